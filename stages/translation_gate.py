"""Table 1's sentences at half the steps, from training to BLEU: the budget gate of docs/verdicts.md."""

import launcher  # noqa: F401

import pandas as pd

from attnrate import cores
from attnrate.core import files, stage
from attnrate.large import checkpoint, device, parts
from attnrate.large.loop import make_accelerator
from attnrate.sources import pairs
from attnrate.translation import bleu, model, tokens
from attnrate.translation.gate import PAIR, halved
from attnrate.translation.score import translations
from attnrate.translation.train import fit, later


def main(p, to, part):
    cores.set_threads(p.threads)
    own, on, originals = p.translation, device.choose(p.device), stage.data("translation_main")
    sizes = {"vocabulary": own.tokens.vocabulary, **own.model}
    path, vocabulary = (stage.data("translation_tokens") / name for name in ("tokens.npz", "vocabulary.model"))
    sentences, vocabulary, corpus = tokens.load(path), tokens.Vocabulary(vocabulary), stage.data("translation_corpus")
    references = [german for _, german in pairs.load(corpus, ["test"])["test"]]
    source = sentences["test_en"]
    altered = tokens.permute(source)

    def run_of(variant, seed):
        weights = parts.weights(originals, own.train.parts, f"original_seed{seed}")
        return halved(later(variant, seed, sizes, own.tune, lambda: model.load(weights, **sizes)), own.train)

    runs = [run_of(variant, seed) for variant in PAIR for seed in own.train.seeds]
    runs = [run for run in runs if parts.holds(part, run.name)]
    with checkpoint.kept(to.name, own, [path, originals]) as folder:

        def score(run):
            row, curve, weights = fit(run, sentences, own.train, folder, make_accelerator(p.device))
            given = altered if run.permuted else source
            return row, curve, translations(weights, given, vocabulary, sizes, own.decode, on)

        rows, curves, texts = zip(*cores.for_device(on)(score, runs), strict=True)
        found = {(run.variant, run.seed): text for run, text in zip(runs, texts, strict=True)}
        scores, _ = bleu.tables(pairs.load_name(corpus), found, references, [])
        files.write_csv(to.results / "bleu.csv", scores)
        files.write_csv(to.results / "losses.csv", pd.DataFrame(rows))
        files.write_csv(to.results / "history.csv", pd.concat(curves))
        to.close()


if __name__ == "__main__":
    stage.run(main)
