"""Does depth repair order? One layer and two, affine and full F̂, on inputs in three orders, and two controls."""

import launcher  # noqa: F401

from itertools import chain

import pandas as pd

from attnrate import cores
from attnrate.beyond import depth
from attnrate.core import files, stage


def main(p, to):
    cores.set_threads(p.threads)
    own = p.beyond.depth
    found = cores.side_by_side(lambda model: depth.run(*model, own), depth.MODELS)
    files.write_csv(to.results / "errors.csv", pd.DataFrame(chain(*found)))
    files.write_json(to.results / "floor.json", depth.affine_floor(own))


if __name__ == "__main__":
    stage.run(main)
