"""Table 1's sentences on another corpus: what the stages before do to translation.data.corpus, in one.

The runs of a seed are in turn, since they go on from its original; seeds are side by side.
"""

import launcher  # noqa: F401

import pandas as pd

from attnrate import cores
from attnrate.core import files, stage
from attnrate.large import checkpoint, device
from attnrate.large.loop import make_accelerator
from attnrate.sources import corpora, pairs
from attnrate.translation import bleu, model, tokens
from attnrate.translation.encode import encode
from attnrate.translation.gate import PAIR, halved
from attnrate.translation.score import tensors, translations
from attnrate.translation.train import fit, later, original


def main(p, to, corpus):
    cores.set_threads(p.threads)
    own, on = p.translation, device.choose(p.device)
    sizes = {"vocabulary": own.tokens.vocabulary, **own.model}
    pairs.save(to.data / "corpus", corpus, corpora.obtain(corpus, corpora.Source()))
    texts = pairs.load(to.data / "corpus")
    sentences, counts, permuted = encode(texts, own.tokens, to.data / "vocabulary.model")
    tokens.save(to.data / "tokens.npz", sentences)
    english, references = map(list, zip(*texts["test"], strict=True))
    source, vocabulary = sentences["test_en"], tokens.Vocabulary(to.data / "vocabulary.model")
    altered = tokens.permute(source)

    def translated(weights, given):
        return translations(weights, given, vocabulary, sizes, own.decode, on)

    with checkpoint.kept(to.name, own, [to.data / "tokens.npz"]) as folder:

        def seed_of(seed):
            accelerator, found, texts = make_accelerator(p.device), {}, {}

            def trained():
                return model.load_weights(model.build(seed=0, **sizes), tensors(found["original"]))

            runs = [original(seed, sizes), *(later(v, seed, sizes, own.tune, trained) for v in own.tune.variants)]
            if own.gate.parts:
                runs += [halved(later(v, seed, sizes, own.tune, trained), own.train) for v in PAIR]
            rows, curves = [], []
            for run in runs:
                row, curve, found[run.variant] = fit(run, sentences, own.train, folder, accelerator)
                rows, curves = [*rows, row], [*curves, curve]
                texts[run.variant] = translated(found[run.variant], altered if run.permuted else source)
                if run.variant == "original":
                    texts["unadapted"] = translated(found["original"], altered)
            return rows, curves, texts

        every = cores.for_device(on)(seed_of, own.train.seeds)
        rows, curves, texts = zip(*every, strict=True)
        found = {("copy", None): english}
        for seed, by_variant in zip(own.train.seeds, texts, strict=True):
            found |= {(variant, seed): text for variant, text in by_variant.items()}
        changed = [i for i, n in enumerate(source.lengths) if n > tokens.MOVED]
        scores, compared = bleu.tables(corpus, found, references, changed)
        files.write_csv(to.results / "bleu.csv", scores)
        files.write_csv(to.results / "changed.csv", compared)
        files.write_csv(to.results / "losses.csv", pd.DataFrame([row for of_seed in rows for row in of_seed]))
        files.write_csv(to.results / "history.csv", pd.concat([curve for of_seed in curves for curve in of_seed]))
        files.write_json(to.results / "counts.json", {"corpus": corpus, **counts})
        files.write_json(to.results / "permuted.json", permuted)
        to.close()


if __name__ == "__main__":
    stage.run(main)
