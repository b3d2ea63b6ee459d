"""Profiles are overlays on params.yaml. `dvc exp run $(python -m attnrate.profile smoke)` runs one.

Prints the overlay as `-S key=value` options, after checking that params.yaml with the overlay is valid.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from attnrate.core import config
from attnrate.core.stage import UserError
from attnrate.schemas.all import Params


def overlay(base: dict, top: dict, path: Path, prefix: str = "") -> dict:
    """base with the values of top; every key of top must be in base."""
    merged = dict(base)
    for key, value in top.items():
        if key not in base:
            raise UserError(f"{path}: {prefix}{key} is not a key of params.yaml")
        nested = isinstance(value, dict) and isinstance(base[key], dict)
        merged[key] = overlay(base[key], value, path, f"{prefix}{key}.") if nested else value
    return merged


def flatten(tree: dict, prefix: str = "") -> dict[str, Any]:
    flat = {}
    for key, value in tree.items():
        flat |= flatten(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat


def options(tree: dict) -> list[str]:
    """-S options in the grammar of `dvc exp run`, without spaces, so that the shell may split them."""

    def text(value: Any) -> str:
        if isinstance(value, list):
            return "[" + ",".join(map(text, value)) + "]"
        return json.dumps(value) if value is None or isinstance(value, bool) else str(value)

    return [part for key, value in flatten(tree).items() for part in ("-S", f"{key}={text(value)}")]


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="a file of profiles/ without .yaml")
    parser.add_argument("--params", type=Path, default=Path("params.yaml"))
    parser.add_argument("--profiles", type=Path, default=Path("profiles"))
    args = parser.parse_args(argv)
    path = args.profiles / f"{args.name}.yaml"
    try:
        if not path.exists():
            known = ", ".join(sorted(p.stem for p in args.profiles.glob("*.yaml"))) or "none here"
            raise UserError(f"{path}: no such profile (known: {known})")
        top = config.read(path)
        config.check(Params, overlay(config.read(args.params), top, path), path)
        print(" ".join(options(top)))
    except UserError as e:
        sys.exit(str(e))


if __name__ == "__main__":
    main()
