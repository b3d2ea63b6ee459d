"""Eq. (8) targets with prescribed POD: coefficients and an evaluation set for each (pairing, α, r)."""

import launcher  # noqa: F401

from attnrate.core import files, stage
from attnrate.rates import pod


def main(p, to):
    with files.atomic(stage.data("targets") / "pod") as folder:
        folder.mkdir()
        for target in pod.make_grid(**p.rates.target):
            target.save(folder / f"{target.name}.npz")


if __name__ == "__main__":
    stage.run(main)
