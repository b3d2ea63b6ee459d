"""Causal attention on the targets of Table 2: what a mask must miss, and what it misses after training."""

import launcher  # noqa: F401

from attnrate import cores
from attnrate.beyond import causal
from attnrate.core import files, stage
from attnrate.core.params import Group
from attnrate.linear import targets
from attnrate.linear.train import run_transformer

NAMES = ("exp/original", "exp/exchange", "exp/roll")


def main(p, to):
    cores.set_threads(p.threads)
    own, recipe, test = p.beyond.causal, p.linear.recipes.centred, p.linear.eval
    cells = targets.replicates(targets.load(stage.data("targets") / "linear.npz"), NAMES, own.seeds)
    masked = Group(p.linear.model | {"causal": True})
    errors, _, _ = run_transformer(cells, own.mh, "causal", recipe, masked, own.train, test)
    files.write_csv(to.results / "errors.csv", errors.assign(floor=[causal.floor(t.matrix) for t, _ in cells]))


if __name__ == "__main__":
    stage.run(main)
