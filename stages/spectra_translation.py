"""Spectra of the encoder's self-attention: untrained, original, and altered on its own order."""

import bootstrap  # noqa: F401

import pandas as pd

from attnrate.analysis import encoder_spectra
from attnrate.core import files, stage
from attnrate.data import tokens
from attnrate.models import seq2seq
from attnrate.schemas.translation import Translation

PARAMS = (
    "profile", "translation.corpus", "threads", "translation.seeds", "translation.spectra_tokens",
    "translation.vocabulary", "translation.width", "translation.depth", "translation.heads", "translation.ff",
    "translation.dropout",
)  # fmt: skip


def main(cfg, args):
    p = cfg.translation
    seed = p.seeds[0]
    plain, permuted = tokens.load(args.tokens), tokens.load(args.permuted)
    cases = {
        "untrained": (seq2seq.make(p, seed), plain),
        "original": (seq2seq.load(p, args.original / f"original_seed{seed}.safetensors"), plain),
        "permuted": (seq2seq.load(p, args.altered / f"permuted_seed{seed}.safetensors"), permuted),
    }
    values, ranks = [], []
    for variant, (model, source) in cases.items():
        rows = encoder_spectra.beginnings([source["dev_en"], source["test_en"]], p.spectra_tokens)
        for into, table in zip((values, ranks), encoder_spectra.measure(model, rows), strict=True):
            table.insert(0, "variant", variant)
            into.append(table)
    files.write_csv(args.values, pd.concat(values))
    files.write_csv(args.ranks, pd.concat(ranks))


if __name__ == "__main__":
    stage.run(
        main, PARAMS, {"translation": Translation}, inputs=["tokens", "permuted", "original", "altered"],
        outs=["values", "ranks", "record"],
    )  # fmt: skip
