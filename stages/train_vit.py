"""Figure 3's sweep: train a ViT with heads of size m_h on CIFAR10, once for each seed."""

import bootstrap  # noqa: F401

from attnrate.core import stage
from attnrate.models import vit
from attnrate.schemas.vit import Vit
from attnrate.training.vit import Run, train_all

PARAMS = (
    "profile", "vit.data", "threads", "vit.seeds", "vit.start",
    "vit.image_size", "vit.patch", "vit.width", "vit.depth", "vit.heads", "vit.mlp_ratio", "vit.pool", "vit.position_std", "vit.train_images",
    "vit.measure_images", "vit.test_images", "vit.epochs", "vit.max_steps", "vit.batch", "vit.accumulate", "vit.optimiser", "vit.lr",
    "vit.schedule", "vit.warmup", "vit.weight_decay", "vit.smoothing", "vit.clip", "vit.checkpoint",
)  # fmt: skip


def main(cfg, args):
    p, mh = cfg.vit, int(args.mh)

    def run(seed):
        return Run(args.reading, mh, seed, "original", lambda: vit.make(p, args.reading, mh, seed, p.start), p.start)

    name = f"train_vit-{args.reading}-mh{mh}"
    train_all([run(seed) for seed in p.seeds], p, args.data, name=name, inputs=[],
              out=args.out, history=args.history, weights=args.weights)  # fmt: skip


if __name__ == "__main__":
    stage.run(
        main, PARAMS, {"vit": Vit}, inputs=["data"], outs=["out", "history", "weights", "record"],
        flags={"reading": ["qk", "head", "width"], "mh": None},
    )  # fmt: skip
