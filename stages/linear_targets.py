"""Linear targets of section 6 in every reading of their alterations, as matrices."""

import launcher  # noqa: F401

from attnrate.core import stage
from attnrate.linear import targets


def main(p, to):
    targets.save(stage.data("targets") / "linear.npz", targets.make_all(**p.linear.target))


if __name__ == "__main__":
    stage.run(main)
