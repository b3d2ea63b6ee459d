"""Profiles are overlays on params.yaml. `dvc exp run $(python -m attnrate.ops.profile smoke)` runs one.

Prints the overlay as `-S key=value` options, after checking that params.yaml with the overlay is valid. With a branch
of dvc.yaml, such as figure-1, its stages follow: they alone run, and what they need. Where it refuses, it prints what
DVC refuses too: a shell would go on without any option, with whatever profile is there.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from attnrate.core import params
from attnrate.core.errors import UserError
from attnrate.ops import costs
from attnrate.report.published import flatten
from attnrate.schemas.all import Params
from attnrate.schemas.check import check

LAPTOP = "laptop"  # what an overlay lies on
REFUSED = "--no-such-profile"


def overlay(base: dict, top: dict, path: Path, prefix: str = "") -> dict:
    """base with the values of top, in plain dicts; every key of top must be in base."""
    if unknown := [key for key in top if key not in base]:
        raise UserError(f"{path}: {prefix}{unknown[0]} is not a key of params.yaml")
    merged = {}
    for key, value in base.items():
        new = top.get(key, {} if isinstance(value, dict) else value)
        nested = isinstance(new, dict) and isinstance(value, dict)
        merged[key] = overlay(value, new, path, f"{prefix}{key}.") if nested else new
    return merged


def options(tree: dict) -> list[str]:
    """-S options in the grammar of `dvc exp run`, without spaces, so that the shell may split them."""

    def text(value: Any) -> str:
        if isinstance(value, list):
            return "[" + ",".join(map(text, value)) + "]"
        return json.dumps(value) if value is None or isinstance(value, bool) else str(value)

    return [part for key, value in flatten(tree).items() for part in ("-S", f"{key}={text(value)}")]


def load(name: str, base: Path = Path("params.yaml"), profiles: Path = Path("profiles")) -> tuple[dict, dict]:
    """A profile as it is, and on params.yaml, checked."""
    path = profiles / f"{name}.yaml"
    if not path.exists():
        known = ", ".join(sorted(p.stem for p in profiles.glob("*.yaml"))) or "none here"
        raise UserError(f"{path}: no such profile (known: {known})")
    top, below = params.read(path), params.read(base)
    if "profile" in top and below["profile"] not in (LAPTOP, top["profile"]):
        raise UserError(f"{base} has the profile {below['profile']}, not {LAPTOP}; `git checkout {base}` first")
    content = overlay(below, top, path)
    check(Params, content, path)
    return top, content


def targets(branch: str) -> list[str]:
    """The stages of a branch."""
    known = costs.branches()
    if found := [stage for stage, name in known.items() if costs.slug(name) == branch]:
        return found
    raise UserError(f"{branch} is no branch: {', '.join(dict.fromkeys(map(costs.slug, known.values())))}")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="a file of profiles/ without .yaml")
    parser.add_argument("branch", nargs="?", help="one of dvc.yaml, such as figure-1: its stages alone")
    parser.add_argument("--params", type=Path, default=Path("params.yaml"))
    parser.add_argument("--profiles", type=Path, default=Path("profiles"))
    args = parser.parse_args(argv)
    try:
        top, _ = load(args.name, args.params, args.profiles)
        print(*options(top), *(targets(args.branch) if args.branch else []))
    except UserError as e:
        print(REFUSED)
        sys.exit(str(e))


if __name__ == "__main__":
    main()
