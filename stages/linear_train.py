"""The Transformer of eq. (5) with position encoding on the cells of Tables 2 and 3, one stack a recipe."""

import bootstrap  # noqa: F401

import pandas as pd

from attnrate.core import files, stage
from attnrate.schemas.linear import Linear
from attnrate.targets import linear
from attnrate.training.linear import fresh_mse, result_row, train_transformer

PARAMS = (
    "profile", "threads", "mh", "linear.seeds", "linear.cells", "linear.n", "linear.width", "linear.steps", "linear.batch",
    "linear.lr", "linear.plain_lr", "linear.warmup", "linear.gain", "linear.eval_size", "linear.eval_seed",
)  # fmt: skip


def main(cfg, args):
    p = cfg.linear
    chosen = {
        "centred": lambda t: True,
        "plain": lambda t: t.name == "exp/original",  # PyTorch's defaults, for comparison
        "learned-filter": lambda t: bool(t.filter),  # does a filter in front win back what mixing cost?
    }[args.recipe]
    cells = [(t, s) for t in linear.load(args.targets) if t.name in p.cells and chosen(t) for s in p.seeds]
    targets, seeds = [t for t, _ in cells], [s for _, s in cells]
    model, history = train_transformer(
        targets, seeds, cfg.mh, recipe="plain" if args.recipe == "plain" else "centred", n=p.n, width=p.width,
        steps=p.steps, lr=p.plain_lr if args.recipe == "plain" else p.lr, warmup=p.warmup, batch=p.batch, gain=p.gain,
        learned_filter=args.recipe == "learned-filter",
    )  # fmt: skip
    mse = fresh_mse(model, targets, p.eval_size, p.eval_seed)
    rows = [result_row(t, "transformer", args.recipe, s, mse[i], mh=cfg.mh) for i, (t, s) in enumerate(cells)]
    files.write_csv(args.out, pd.DataFrame(rows))
    curves = [
        pd.DataFrame({"step": history.index, "target": t.name, "model": "transformer", "recipe": args.recipe, "seed": s,
                      "mse": history[i].values})
        for i, (t, s) in enumerate(cells)
    ]  # fmt: skip
    files.write_csv(args.history, pd.concat(curves))
    with files.atomic(args.weights) as draft:
        files.write_weights(draft, model.state_dict())


if __name__ == "__main__":
    stage.run(
        main, PARAMS, {"linear": Linear}, inputs=["targets"], outs=["out", "history", "weights", "record"],
        flags={"recipe": ["centred", "plain", "learned-filter"]},
    )  # fmt: skip
