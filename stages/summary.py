"""The one metrics file: what `dvc metrics diff` and `dvc exp show` compare."""

import bootstrap  # noqa: F401

from attnrate.core import files, stage
from attnrate.report import summary


def main(cfg, args):
    files.write_json(args.out, summary.collect(files.read_json(args.claims), args.results), digits=4)


if __name__ == "__main__":
    stage.run(main, inputs=["claims", "results"], outs=["out"])
