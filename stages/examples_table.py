"""The three tasks of appendix B.1 in one table."""

import launcher  # noqa: F401

import pandas as pd

from attnrate.core import files, stage

TASKS = ("nearest", "mass", "selection")


def main(p, to):
    parts = [pd.read_csv(stage.results("examples_train") / task / "errors.csv") for task in TASKS]
    files.write_csv(to.results / "examples.csv", pd.concat(parts))


if __name__ == "__main__":
    stage.run(main)
