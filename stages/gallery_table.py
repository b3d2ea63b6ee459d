"""Join the three tasks of appendix B.1 into one table."""

import bootstrap  # noqa: F401

import pandas as pd

from attnrate.core import files, stage

TASKS = ("nearest", "mass", "selection")

PARAMS = ("profile",)


def main(cfg, args):
    files.write_csv(args.out, pd.concat(pd.read_csv(getattr(args, task)) for task in TASKS))


if __name__ == "__main__":
    stage.run(main, PARAMS, inputs=TASKS, outs=["out", "record"])
