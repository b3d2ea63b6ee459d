"""The command `attnrate`."""

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

from attnrate.core.errors import UserError


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="attnrate", description="Where a result comes from; attention spectra of your own model."
    )
    commands = top.add_subparsers(dest="command", required=True)
    trace = commands.add_parser("trace", help="every stage behind a file, with data sets, seeds, packages and device")
    trace.add_argument("file", type=Path, help="an out of the pipeline, such as reports/tables/table1.md")
    add = commands.add_parser(
        "spectrum",
        help="singular values of attention before the softmax, for every layer and head",
        description="Singular values of QKᵀ·scale for every layer and head of a model, their ranks, fits and figures.",
    ).add_argument
    add("model", help="a timm name, a directory saved by transformers' save_pretrained, or a name on the hub")
    add("--images", type=Path, metavar="FOLDER", help="inputs: the images in a folder and below")
    add("--text", type=Path, metavar="FILE", help="inputs: the lines of a text file")
    add("--random", type=int, metavar="N", help="inputs: N random ones of the right shape")
    add("--out", type=Path, metavar="FOLDER", required=True, help="a new folder for the results, or an old result")
    add("--weights", type=Path, metavar="FILE", help="safetensors file for a timm model (otherwise weights are random)")
    add("--pretrained", action="store_true", help="timm's own weights, from the hub")
    add("--normalisation", choices=["none", "tokens", "largest"], default="none", help="divide by τ or by σ_1 (none)")
    add(
        "--tokens",
        type=int,
        metavar="N",
        help="cut texts after N tokens (the model's limit); length of random ones (128)",
    )
    add("--batch", type=int, metavar="N", default=8, help="inputs at a time (8)")
    add("--seed", type=int, metavar="N", default=0, help="of random weights and random inputs (0)")
    return top


def main(argv: list[str] | None = None) -> None:
    options = vars(parser().parse_args(argv))
    command = options.pop("command")
    try:
        run_trace(options["file"]) if command == "trace" else run_spectrum(options)
    except UserError as e:
        sys.exit(f"attnrate {command}: {e}")
    except KeyboardInterrupt:
        sys.exit(f"\nattnrate {command}: interrupted, nothing was written")


def run_trace(file: Path) -> None:
    try:
        from attnrate.ops.trace import report
    except ModuleNotFoundError as e:
        raise UserError(
            f"{e.name} is not installed, which the pipeline needs: pip install 'attnrate[pipeline]'"
        ) from None

    print(report(file))


def run_spectrum(options: dict) -> None:
    from attnrate.tool.spectrum import spectrum  # seconds that --help need not pay

    if find_spec("transformers"):
        from transformers.utils import logging

        logging.set_verbosity_error()
        logging.disable_progress_bar()
    out = options["out"]
    spectrum(options.pop("model"), options.pop("out"), **options)
    print(f"{out / 'summary.md'}")
