"""The main model of Figure 2 and Table 1, once for each seed."""

import bootstrap  # noqa: F401

from attnrate.core import stage
from attnrate.models import vit
from attnrate.schemas.vit import Vit
from attnrate.training.vit import Run, train_all

PARAMS = (
    "profile", "vit.data", "threads", "vit.main_mh", "vit.main_start", "vit.table_seeds",
    "vit.image_size", "vit.patch", "vit.width", "vit.depth", "vit.heads", "vit.mlp_ratio", "vit.pool", "vit.position_std", "vit.train_images",
    "vit.measure_images", "vit.test_images", "vit.epochs", "vit.max_steps", "vit.batch", "vit.accumulate", "vit.optimiser", "vit.lr",
    "vit.schedule", "vit.warmup", "vit.weight_decay", "vit.smoothing", "vit.clip", "vit.checkpoint",
    "vit.tune_epochs", "vit.tune_optimiser", "vit.tune_lr", "vit.tune_weight_decay",
)  # fmt: skip


def main(cfg, args):
    p = cfg.vit
    scratch = p.main_start == "scratch"
    variant, budget = (
        ("original", "full") if scratch else ("pretrained", "tune")
    )  # only the former belongs to the sweep

    def run(seed):
        return Run("qk", p.main_mh, seed, variant, lambda: vit.make(p, "qk", p.main_mh, seed, p.main_start), p.main_start,
                   budget=budget)  # fmt: skip

    train_all([run(seed) for seed in p.table_seeds], p, args.data, name="train_vit_main", inputs=[],
              out=args.out, history=args.history, weights=args.weights)  # fmt: skip


if __name__ == "__main__":
    stage.run(main, PARAMS, {"vit": Vit}, inputs=["data"], outs=["out", "history", "weights", "record"])
