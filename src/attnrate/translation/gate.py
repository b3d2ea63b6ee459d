"""The budget gate of docs/verdicts.md: runs that go on from a trained model for half as long."""

from dataclasses import replace

from attnrate.core.params import Group
from attnrate.translation.train import Run, recipe

PAIR = ("continued", "permuted")  # the variants that are compared


def halved(run: Run, train: Group) -> Run:
    """With a decay of the rate of its own."""
    half = {"max_steps": recipe(train, run.tune).steps // 2}
    return replace(run, variant=f"{run.variant}-half", tune=Group(run.tune | half))
