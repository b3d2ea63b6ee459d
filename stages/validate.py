"""Check the whole of params.yaml before any stage has lost an out."""

import launcher  # noqa: F401

from attnrate.core import files, stage
from attnrate.schemas.all import Params
from attnrate.schemas.check import check


def main(p, to):
    check(Params, p, "params.yaml")
    files.write_text("reports/params.ok", "params.yaml is valid\n")


if __name__ == "__main__":
    stage.run(main)
