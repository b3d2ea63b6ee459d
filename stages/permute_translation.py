"""Table 1's altered order: the first 10 tokens of every source sentence go to its end; counts of both kinds."""

import bootstrap  # noqa: F401

from attnrate.core import files, stage
from attnrate.data import tokens
from attnrate.schemas.translation import Translation

PARAMS = (
    "profile",
    "translation.corpus",
)


def main(cfg, args):
    sources = {name: s for name, s in tokens.load(args.tokens).items() if name.endswith("_en")}
    tokens.save(args.out, {name: tokens.permute(s) for name, s in sources.items()})
    short = {name.removesuffix("_en"): int((s.lengths <= tokens.MOVED).sum()) for name, s in sources.items()}
    files.write_json(args.counts, {
        "moved_tokens": tokens.MOVED,
        "rule": f"sentences of at most {tokens.MOVED} tokens are unchanged; the end-of-sentence token stays last",
        "unchanged": short,
        "permuted": {name.removesuffix("_en"): len(s) - short[name.removesuffix("_en")] for name, s in sources.items()},
    })  # fmt: skip


if __name__ == "__main__":
    stage.run(main, PARAMS, {"translation": Translation}, inputs=["tokens"], outs=["out", "counts", "record"])
