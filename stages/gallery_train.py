"""Train the Transformer of eq. (53) on one task of appendix B.1, every variant and seed, and read its attention."""

import bootstrap  # noqa: F401

import numpy as np
import pandas as pd

from attnrate.core import files, stage
from attnrate.schemas.gallery import Gallery
from attnrate.targets.gallery import draw, showcase, solve
from attnrate.training import gallery

PARAMS = (
    "profile", "threads", "mh", "gallery.seeds", "gallery.mass_variants", "gallery.selection_variants", "gallery.n", "gallery.width",
    "gallery.nearest_steps", "gallery.mass_steps", "gallery.selection_steps", "gallery.batch", "gallery.lr",
    "gallery.warmup", "gallery.gain", "gallery.token_weight", "gallery.eval_size", "gallery.eval_seed",
)  # fmt: skip
PANEL_POINTS = 500  # points of panel (c)


def main(cfg, args):
    p, task = cfg.gallery, args.task
    variants = {"nearest": ["plain"], "mass": p.mass_variants, "selection": p.selection_variants}[task]
    test = solve(task, draw(task, p.eval_size, np.random.default_rng(p.eval_seed)))
    shown = showcase(task, np.random.default_rng(p.eval_seed))
    known = np.isfinite(test.ff[..., 0])  # (N, τ): where F∘f is given
    rows, curves, weights, attention, ff = [], [], {}, [], []
    for name in variants:
        variant = gallery.VARIANTS[task][name]
        model, history = gallery.fit(
            task, variant, p.seeds, mh=cfg.mh, n=p.n, width=p.width, gain=p.gain, steps=getattr(p, f"{task}_steps"),
            batch=p.batch, lr=p.lr, warmup=p.warmup, token_weight=p.token_weight, label=f"{task}, {name}",
        )  # fmt: skip
        results = gallery.inspect(model, variant.encode(test.x))
        for i, seed in enumerate(p.seeds):
            key = {"task": task, "variant": name, "mh": cfg.mh, "seed": seed}
            rows.append(key | gallery.measure(test, *(r[i] for r in results)))
            curves.append(pd.DataFrame({"step": history.index, **key, "loss": history[i].values}))
        weights |= {f"{name}.{k}": v for k, v in model.state_dict().items()}
        attention.append(gallery.inspect(model, variant.encode(shown.x))[1][:, 0])
        ff.append(results[2][:, known][:, :PANEL_POINTS])
    files.write_csv(args.out, pd.DataFrame(rows))
    files.write_csv(args.history, pd.concat(curves))
    with files.atomic(args.weights) as draft:
        files.write_weights(draft, weights)
    panels = {
        "x": shown.x[0], "true": shown.attention[0], "attention": np.stack(attention),  # (V, S, τ, τ)
        "ff_x": test.x[known][:PANEL_POINTS], "ff_true": test.ff[known][:PANEL_POINTS], "ff": np.stack(ff),
    }  # fmt: skip
    with files.atomic(args.panels) as draft, draft.open("wb") as f:
        np.savez(f, variants=variants, seeds=p.seeds, **{k: v.astype(np.float32) for k, v in panels.items()})


if __name__ == "__main__":
    stage.run(
        main, PARAMS, {"gallery": Gallery}, outs=["out", "history", "panels", "weights", "record"], flags={"task": ["nearest", "mass", "selection"]},
    )  # fmt: skip
