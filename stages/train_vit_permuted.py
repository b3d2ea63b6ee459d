"""Table 1: go on from the main model on permuted patches, and as long on the original ones; train from scratch too.

continued: original order; permuted: first 10 patches to the end; unadapted: as permuted, but only tested; random: a
random permutation; permuted-scratch: as permuted, but from where the main model itself started.
"""

import bootstrap  # noqa: F401

from attnrate.core import files, stage
from attnrate.models import vit
from attnrate.schemas.vit import Vit
from attnrate.training.vit import Run, train_all

PARAMS = (
    "profile", "vit.data", "threads", "vit.main_mh", "vit.main_start", "vit.table_seeds", "vit.extra_seeds",
    "vit.image_size", "vit.patch", "vit.width", "vit.depth", "vit.heads", "vit.mlp_ratio", "vit.pool", "vit.position_std", "vit.train_images",
    "vit.measure_images", "vit.test_images", "vit.epochs", "vit.max_steps", "vit.batch", "vit.accumulate", "vit.optimiser", "vit.lr",
    "vit.schedule", "vit.warmup", "vit.weight_decay", "vit.smoothing", "vit.clip", "vit.checkpoint",
    "vit.tune_epochs", "vit.tune_optimiser", "vit.tune_lr", "vit.tune_weight_decay",
)  # fmt: skip


def main(cfg, args):
    p = cfg.vit
    first10, random = (files.read_npz(path)["p"] for path in (args.first10, args.random))
    source, budget = ("original", "full") if p.main_start == "scratch" else ("pretrained", "tune")

    def fresh(seed):
        return vit.make(p, "qk", p.main_mh, seed, p.main_start)

    def trained(seed):
        model = vit.make(p, "qk", p.main_mh, seed)
        path = args.main / f"{source}_seed{seed}.safetensors"
        weights = files.read_weights(path)
        with files.reading(path):
            model.load_state_dict(weights)
        return model

    def runs(variant, seeds, model, permutation, budget):
        return [
            Run("qk", p.main_mh, seed, variant, lambda seed=seed: model(seed), p.main_start, permutation, budget)
            for seed in seeds
        ]

    every = [
        *runs("continued", p.table_seeds, trained, None, "tune"),
        *runs("unadapted", p.table_seeds, trained, first10, "none"),
        *runs("permuted", p.table_seeds, trained, first10, "tune"),
        *runs("random", p.extra_seeds, trained, random, "tune"),
        *runs("permuted-scratch", p.extra_seeds, fresh, first10, budget),
    ]
    train_all(every, p, args.data, name="train_vit_permuted", inputs=[args.main, args.first10, args.random],
              out=args.out, history=args.history, weights=args.weights)  # fmt: skip


if __name__ == "__main__":
    stage.run(
        main, PARAMS, {"vit": Vit}, inputs=["data", "main", "first10", "random"], outs=["out", "history", "weights", "record"],
    )  # fmt: skip
