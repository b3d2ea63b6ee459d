"""Linear targets of section 6 in every reading of their alterations, as matrices."""

import bootstrap  # noqa: F401

from attnrate.core import files, stage
from attnrate.schemas.linear import Linear
from attnrate.targets import linear

PARAMS = ("profile", "linear.tau", "linear.kernel_seed", "linear.filter_seed")


def main(cfg, args):
    with files.atomic(args.out) as draft, draft.open("wb") as f:
        linear.save(f, linear.make_all(cfg.linear.tau, cfg.linear.kernel_seed, cfg.linear.filter_seed))


if __name__ == "__main__":
    stage.run(main, PARAMS, {"linear": Linear}, outs=["out", "record"])
