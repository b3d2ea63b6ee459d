"""The original Transformer on English-German, once for each seed."""

import bootstrap  # noqa: F401

from attnrate.core import stage
from attnrate.data import tokens
from attnrate.models import seq2seq
from attnrate.schemas.translation import Translation
from attnrate.training.translation import Run, train_all

PARAMS = (
    "profile", "translation.corpus", "threads", "translation.seeds",
    "translation.vocabulary", "translation.width", "translation.depth", "translation.heads", "translation.ff",
    "translation.dropout", "translation.smoothing", "translation.batch_tokens", "translation.accumulate",
    "translation.steps", "translation.max_steps", "translation.lr", "translation.schedule", "translation.warmup",
    "translation.clip", "translation.checkpoint", "translation.average", "translation.average_every",
)  # fmt: skip


def main(cfg, args):
    p = cfg.translation
    runs = [Run("original", seed, lambda seed=seed: seq2seq.make(p, seed)) for seed in p.seeds]
    train_all(runs, p, tokens.load(args.tokens), {}, name="train_translation", inputs=[args.tokens],
              out=args.out, history=args.history, weights=args.weights)  # fmt: skip


if __name__ == "__main__":
    stage.run(
        main, PARAMS, {"translation": Translation}, inputs=["tokens"], outs=["out", "history", "weights", "record"]
    )
