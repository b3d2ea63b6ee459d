"""All ViT runs in one table, their spectra in another, and the ranks of these in a third."""

import bootstrap  # noqa: F401

import pandas as pd

from attnrate.core import files, stage
from attnrate.schemas.vit import Vit

PARAMS = ("profile", "vit.data", "vit.readings", "vit.mh_sweep", "vit.main_mh", "vit.main_start")


def main(cfg, args):
    p = cfg.vit
    sweep = [f"{reading}_mh{mh}" for reading in p.readings for mh in p.mh_sweep]
    # A main model with another start than the sweep's is in Figure 2, but is no point of Figure 3; else it stands for
    # its head size, which the sweep may also name.
    same = p.main_start == "scratch"
    sweep = [name for name in sweep if not (same and name == f"qk_mh{p.main_mh}")]
    runs = [pd.read_csv(args.runs / f"{name}.csv") for name in (*sweep, "main", "permuted")]
    files.write_csv(args.out, pd.concat(runs).sort_values(["reading", "mh", "variant", "seed"]))
    names = [*sweep, "main"] if same else sweep
    for folder, out in ((args.values, args.values_out), (args.ranks, args.ranks_out)):
        parts = [pd.read_csv(folder / f"{name}.csv") for name in names]
        files.write_csv(out, pd.concat(parts).sort_values(["reading", "mh"], kind="stable"))


if __name__ == "__main__":
    stage.run(
        main, PARAMS, {"vit": Vit}, inputs=["runs", "values", "ranks"], outs=["out", "values_out", "ranks_out", "record"],
    )  # fmt: skip
