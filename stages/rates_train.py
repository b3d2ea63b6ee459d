"""Train the Transformer of eq. (5) on every POD target by one recipe, all cells in one stack."""

import bootstrap  # noqa: F401

import pandas as pd

from attnrate.core import files, stage
from attnrate.schemas.rates import Rates
from attnrate.targets import pod
from attnrate.training import rates

PARAMS = (
    "profile", "threads", "rates.alphas", "rates.ranks", "rates.seeds", "rates.n", "rates.width", "rates.train_mh",
    "rates.steps", "rates.batch", "rates.grid", "rates.queries", "rates.paper_lr", "rates.trained_lr",
    "rates.trained_slope", "rates.warmup",
)  # fmt: skip


def main(cfg, args):
    p = cfg.rates
    recipe = {
        "paper": rates.Recipe(p.paper_lr),
        "trained": rates.Recipe(p.trained_lr, "cosine", p.warmup, p.trained_slope),
    }[args.recipe]
    targets = pod.load_grid(args.targets, p.alphas, p.ranks)
    cells = [(t, mh, seed) for t in range(len(targets)) for mh in p.train_mh for seed in p.seeds]
    model, history = rates.fit(
        targets, cells, recipe, n=p.n, width=p.width, steps=p.steps, batch=p.batch, grid=p.grid, queries=p.queries,
        label=args.recipe,
    )  # fmt: skip
    outputs = rates.predict(model, targets[0].x)
    keys = [{"alpha": targets[t].alpha, "rank": targets[t].rank, "mh": mh, "seed": seed} for t, mh, seed in cells]
    mse = [((out - targets[t].y) ** 2).mean() for out, (t, _, _) in zip(outputs, cells, strict=True)]
    files.write_csv(args.out, pd.DataFrame(keys).assign(mse=mse))
    curves = [pd.DataFrame({"step": history.index, **key, "mse": history[i].values}) for i, key in enumerate(keys)]
    files.write_csv(args.history, pd.concat(curves))
    with files.atomic(args.weights) as draft:
        files.write_weights(draft, model.state_dict())


if __name__ == "__main__":
    stage.run(
        main, PARAMS, {"rates": Rates}, inputs=["targets"], outs=["out", "history", "weights", "record"],
        flags={"recipe": ["paper", "trained"]},
    )  # fmt: skip
