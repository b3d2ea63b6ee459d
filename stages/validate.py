"""Check the whole of params.yaml before any stage has lost an out."""

import bootstrap  # noqa: F401

from attnrate.core import config, files, stage
from attnrate.schemas.all import Params


def main(cfg, args):
    config.check(Params, config.read(args.params), args.params)
    files.write_text(args.out, "params.yaml is valid\n")


if __name__ == "__main__":
    stage.run(main, inputs=["params"], outs=["out"])
