"""Does depth repair order? One layer and two, affine and full F̂, on inputs in three orders, and two controls."""

import launcher  # noqa: F401

import pandas as pd

from attnrate.beyond import depth
from attnrate.core import files, stage


def main(p, to):
    stage.set_threads(p.threads)
    own = p.beyond.depth
    rows = [row for model in depth.MODELS for row in depth.run(*model, own)]
    files.write_csv(to.results / "errors.csv", pd.DataFrame(rows))
    files.write_json(to.results / "floor.json", depth.affine_floor(own))


if __name__ == "__main__":
    stage.run(main)
