"""The command `attnrate`."""

import argparse
import importlib
import sys
from pathlib import Path

from attnrate.core.errors import UserError

OPS = ("trace", "publish", "revision", "judge")  # need the pipeline


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="attnrate",
        description="Results: their origin, those of larger profiles. Your own model: spectra, the size heads need.",
    )
    commands = top.add_subparsers(dest="command", required=True)
    trace = commands.add_parser("trace", help="every stage behind a file, with data sets, seeds, packages and device")
    trace.add_argument("file", type=Path, help="an out of the pipeline, such as reports/tables/table1.md")
    publish = commands.add_parser("publish", help="keep what a larger profile found beside the laptop's results")
    publish.add_argument("branch", help="all, or a branch of dvc.yaml such as figure-1 or cifar10")
    publish.add_argument("--profile", metavar="NAME", help="refuse any other profile than this (that of params.yaml)")
    revision = commands.add_parser("revision", help="a commit with a published profile's files in place, for dvc diff")
    revision.add_argument("profile", help="a published profile, such as desk")
    judge = commands.add_parser("judge", help="the claims of a published profile by today's criteria")
    judge.add_argument("profile", help="a published profile, such as desk")
    add = commands.add_parser(
        "spectrum",
        help="singular values of attention before and after the softmax, for every layer and head",
        description="Singular values of attention for every layer and head of a model, their ranks, fits and figures.",
    ).add_argument
    _common(add)
    add("--against", metavar="MODEL", help="a second checkpoint beside it, or `untrained`")
    add("--normalisation", choices=["none", "tokens", "largest"], default="none", help="divide by τ or by σ_1 (none)")
    add(
        "--spectra",
        dest="which",
        nargs="+",
        choices=["scores", "centred", "softmax"],
        default=["scores", "centred", "softmax"],
        help="of scores, of scores with keys centred, after the softmax (all)",
    )
    add = commands.add_parser(
        "heads",
        help="how large the heads of a model must be",
        description="The heads of a model cut to several sizes m_h: what that does, and the least that keeps the loss.",
    ).add_argument
    _common(add)
    add(
        "--labels",
        nargs="?",
        const="folders",
        metavar="FILE",
        help="classes: of images the folders that they are in, or a file with a class number a line",
    )
    add("--sizes", nargs="+", type=int, metavar="M", help="head sizes to try (8 between 1 and the model's own)")
    add("--tolerance", type=float, metavar="T", default=0.01, help="change of the loss that is allowed (0.01)")
    add("--export", action="store_true", help="write a checkpoint with the smaller heads")
    return top


def _common(add) -> None:
    """What every tool for a model takes."""
    add("model", help="a timm or torchvision name, a directory saved by save_pretrained, or a name on the hub")
    add("--images", type=Path, metavar="FOLDER", help="inputs: the images in a folder and below")
    add("--text", type=Path, metavar="FILE", help="inputs: the lines of a text file")
    add("--random", type=int, metavar="N", help="inputs: N random ones of the right shape")
    add("--targets", type=Path, metavar="FILE", help="lines for the decoder of an encoder-decoder (the inputs again)")
    add("--out", type=Path, metavar="FOLDER", required=True, help="a new folder for the results, or an old result")
    add("--weights", type=Path, metavar="FILE", help="safetensors file for a timm or torchvision model (else random)")
    add("--pretrained", action="store_true", help="timm's or torchvision's own weights, from their hub")
    add("--revision", metavar="NAME", help="branch, tag or commit of a model on the hub")
    add(
        "--tokens",
        type=int,
        metavar="N",
        help="cut texts after N tokens (the model's limit); length of random ones (128)",
    )
    add("--batch", type=int, metavar="N", default=8, help="inputs at a time (8)")
    add("--device", default="auto", metavar="NAME", help="cpu, cuda, cuda:1, mps (cuda if there is one)")
    add("--dtype", default="float32", choices=["float32", "bfloat16", "float16"], help="of the weights (float32)")
    add("--seed", type=int, metavar="N", default=0, help="of random weights and random inputs (0)")


def main(argv: list[str] | None = None) -> None:
    options = vars(parser().parse_args(argv))
    command = options.pop("command")
    try:
        run_ops(command, options) if command in OPS else run_tool(command, options)
    except UserError as e:
        sys.exit(f"attnrate {command}: {e}")
    except KeyboardInterrupt:
        sys.exit(f"\nattnrate {command}: interrupted, nothing was written")


def run_ops(command: str, options: dict) -> None:
    """What needs the pipeline; each command is a module of ops."""
    try:
        module = importlib.import_module(f"attnrate.ops.{command}")
    except ModuleNotFoundError as e:
        raise UserError(
            f"{e.name} is not installed, which the pipeline needs: pip install 'attnrate[pipeline]'"
        ) from None
    print(module.main(**options))


def _too_large(e: BaseException | None) -> bool:
    """PyTorch has a type for a GPU's memory, and for the CPU's only words."""
    words = ("out of memory", "can't allocate memory", "not enough memory")
    return isinstance(e, MemoryError) or (isinstance(e, RuntimeError) and any(w in str(e) for w in words))


def run_tool(command: str, options: dict) -> None:
    if command == "heads":  # seconds that --help need not pay
        from attnrate.tool.heads import heads as tool
    else:
        from attnrate.tool.spectrum import spectrum as tool
    out = options["out"]
    try:
        tool(options.pop("model"), options.pop("out"), **options)
    except (UserError, RuntimeError, MemoryError) as e:
        if any(map(_too_large, (e, e.__cause__))):
            raise UserError(
                f"out of memory: fewer inputs at a time (--batch, now {options['batch']}), shorter texts (--tokens) or "
                "--dtype bfloat16 need less"
            ) from None
        raise
    print(f"{out / 'summary.md'}")
