"""Table 1: go on from the original model with permuted source sentences.

permuted: from the trained model, as the paper does; continued: as long in the original order; permuted-scratch:
as permuted, but from where the original model itself started, and as long as it.
"""

import bootstrap  # noqa: F401

from attnrate.core import stage
from attnrate.data import tokens
from attnrate.models import seq2seq
from attnrate.schemas.translation import Translation
from attnrate.training.translation import Run, train_all

PARAMS = (
    "profile", "translation.corpus", "threads", "translation.seeds", "translation.variants",
    "translation.vocabulary", "translation.width", "translation.depth", "translation.heads", "translation.ff",
    "translation.dropout", "translation.smoothing", "translation.batch_tokens", "translation.accumulate",
    "translation.steps", "translation.tune_steps", "translation.max_steps", "translation.lr", "translation.tune_lr",
    "translation.schedule", "translation.warmup", "translation.clip", "translation.checkpoint", "translation.average",
    "translation.average_every",
)  # fmt: skip


def main(cfg, args):
    p = cfg.translation

    def run(variant, seed):
        if variant == "permuted-scratch":
            return Run(variant, seed, lambda: seq2seq.make(p, seed), permuted=True)
        original = args.original / f"original_seed{seed}.safetensors"
        return Run(variant, seed, lambda: seq2seq.load(p, original), permuted=variant == "permuted", tune=True)

    runs = [run(variant, seed) for variant in p.variants for seed in p.seeds]
    train_all(runs, p, tokens.load(args.tokens), tokens.load(args.permuted), name="train_translation_permuted",
              inputs=[args.tokens, args.permuted, args.original], out=args.out, history=args.history,
              weights=args.weights)  # fmt: skip


if __name__ == "__main__":
    stage.run(
        main, PARAMS, {"translation": Translation}, inputs=["tokens", "permuted", "original"],
        outs=["out", "history", "weights", "record"],
    )  # fmt: skip
