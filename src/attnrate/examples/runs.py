"""Runs of appendix B.1: which variant stands for a task, which seed for a variant."""

import pandas as pd

MAIN = {"nearest": "plain", "mass": "segment-id", "selection": "one-hot"}
STATED = {"mass": "position-only", "selection": "raw-index"}  # the inputs as the paper states them


def runs(table: pd.DataFrame, task: str, variant: str) -> pd.DataFrame:
    return table[(table.task == task) & (table.variant == variant)]


def median_run(part: pd.DataFrame) -> pd.Series:
    """The run of median test MSE (the better of the two middle ones)."""
    return part.sort_values("mse", kind="stable").iloc[(len(part) - 1) // 2]
