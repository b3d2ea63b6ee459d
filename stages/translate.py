"""BLEU and chrF of every model on the test set, of copying the source, and the first 20 translations.

unadapted is the original model on permuted sentences, before it has seen any.
"""

import bootstrap  # noqa: F401

import pandas as pd

from attnrate.analysis import bleu
from attnrate.core import files, stage
from attnrate.data import pairs, tokens
from attnrate.models import beam, seq2seq
from attnrate.schemas.translation import Translation

PARAMS = (
    "profile", "translation.corpus", "threads", "translation.seeds", "translation.variants",
    "translation.vocabulary", "translation.width", "translation.depth", "translation.heads", "translation.ff",
    "translation.dropout", "translation.beams", "translation.length_penalty", "translation.decode_batch",
)  # fmt: skip
SHOWN = 20


def main(cfg, args):
    p = cfg.translation
    vocabulary = tokens.Vocabulary(args.vocabulary)
    sources = {False: tokens.load(args.tokens)["test_en"], True: tokens.load(args.permuted)["test_en"]}
    english, references = map(list, zip(*pairs.load(args.corpus, ["test"])["test"], strict=True))

    found = {("copy", None): english}
    for seed in p.seeds:
        cases = [("original", args.original, "original"), ("unadapted", args.original, "original")]
        cases += [(variant, args.altered, variant) for variant in p.variants]
        for variant, folder, name in cases:
            model = seq2seq.on_device(seq2seq.load(p, folder / f"{name}_seed{seed}.safetensors"))
            ids = beam.translate(
                model, sources[variant not in ("original", "continued")],
                beams=p.beams, length_penalty=p.length_penalty, batch=p.decode_batch,
            )  # fmt: skip
            found[variant, seed] = [vocabulary.decode(sentence) for sentence in ids]

    corpus = pairs.load_name(args.corpus)
    rows = [
        {"corpus": corpus, "variant": variant, "seed": seed, **bleu.scores(hypotheses, references)}
        for (variant, seed), hypotheses in found.items()
    ]
    files.write_csv(args.out, pd.DataFrame(rows).astype({"seed": "Int64"}))
    shown = {variant: text for (variant, seed), text in found.items() if seed == p.seeds[0]}
    files.write_json(args.samples, [
        {"source": english[i], "reference": references[i], "hypotheses": {v: text[i] for v, text in shown.items()}}
        for i in range(min(SHOWN, len(english)))
    ])  # fmt: skip
    with files.atomic(args.hypotheses) as draft:  # `sacrebleu REFERENCE -i FILE` scores one of these
        draft.mkdir()
        for (variant, seed), text in found.items():
            name = f"{variant}.de" if seed is None else f"{variant}_seed{seed}.de"
            (draft / name).write_text("".join(f"{line}\n" for line in text), encoding="utf-8")


if __name__ == "__main__":
    stage.run(
        main, PARAMS, {"translation": Translation},
        inputs=["corpus", "vocabulary", "tokens", "permuted", "original", "altered"], outs=["out", "samples", "hypotheses", "record"],
    )  # fmt: skip
