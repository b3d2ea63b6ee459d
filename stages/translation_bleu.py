"""BLEU and chrF of every model on the test set, of copying the source, and the first 20 translations.

changed.csv has BLEU on the sentences that the altered order changes, with a paired bootstrap over them.

unadapted is the original model on permuted sentences, before it has seen any.
"""

import launcher  # noqa: F401

from attnrate import cores
from attnrate.core import files, stage
from attnrate.large import device, parts
from attnrate.sources import pairs
from attnrate.translation import beam, bleu, model, tokens

SHOWN = 20


def main(p, to):
    cores.set_threads(p.threads)
    on = device.choose(p.device)
    sizes = {"vocabulary": p.translation.tokens.vocabulary, **p.translation.model}
    seeds, variants, corpus = p.translation.train.seeds, p.translation.tune.variants, stage.data("translation_corpus")
    vocabulary = tokens.Vocabulary(stage.data("translation_tokens") / "vocabulary.model")
    source = tokens.load(stage.data("translation_tokens") / "tokens.npz")["test_en"]
    permuted = tokens.permute(source)
    english, references = map(list, zip(*pairs.load(corpus, ["test"])["test"], strict=True))

    def trained(variant, seed):
        if variant in ("original", "unadapted"):
            path = parts.weights(stage.data("translation_main"), p.translation.train.parts, f"original_seed{seed}")
        else:
            folder = stage.data("translation_permuted")
            path = parts.weights(folder, p.translation.tune.parts, f"{variant}_seed{seed}")
        return model.load(path, **sizes).to(on)

    def translate(case):
        given = source if case[0] in ("original", "continued") else permuted
        return beam.translate(trained(*case), given, **p.translation.decode)

    cases = [(variant, seed) for seed in seeds for variant in ("original", "unadapted", *variants)]
    found = {("copy", None): english}
    for case, ids in zip(cases, cores.for_device(on)(translate, cases), strict=True):
        found[case] = [vocabulary.decode(sentence) for sentence in ids]

    changed = [i for i, n in enumerate(source.lengths) if n > tokens.MOVED]
    scores, compared = bleu.tables(pairs.load_name(corpus), found, references, changed)
    files.write_csv(to.results / "bleu.csv", scores)
    files.write_csv(to.results / "changed.csv", compared)
    shown = {variant: text for (variant, seed), text in found.items() if seed == seeds[0]}
    samples = [
        {"source": english[i], "reference": references[i], "hypotheses": {v: text[i] for v, text in shown.items()}}
        for i in range(min(SHOWN, len(english)))
    ]
    files.write_json(to.results / "samples.json", samples)
    for (variant, seed), text in found.items():  # `sacrebleu REFERENCE -i FILE` scores one of these
        file = f"{variant}.de" if seed is None else f"{variant}_seed{seed}.de"
        (to.data / file).write_text("".join(f"{line}\n" for line in text), encoding="utf-8")


if __name__ == "__main__":
    stage.run(main)
