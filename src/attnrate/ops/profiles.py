"""`python -m attnrate.ops.profiles`: what each profile changes, as a table in docs/profiles.md.

No stage depends on it; `make readme` calls it.
"""

import re
import sys
from pathlib import Path
from typing import Any

from attnrate.core import files, params
from attnrate.core.errors import UserError
from attnrate.ops.profile import flatten

BEGIN, END = "<!-- profiles:begin -->", "<!-- profiles:end -->"


def text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) if len(value) <= 5 else f"{len(value)} values"
    return "null" if value is None else str(value)


def table(laptop: dict, profiles: dict[str, dict]) -> str:
    """A row for each parameter that some profile changes; empty where the laptop's value stands."""
    base, tops = flatten(laptop), {name: flatten(top) for name, top in profiles.items()}
    lines = [f"| parameter | laptop | {' | '.join(tops)} |", "|---" * (len(tops) + 2) + "|"]
    for key, value in base.items():
        changed = {name: top[key] for name, top in tops.items() if key in top and top[key] != value}
        if changed:
            cells = [f"`{key}`", text(value), *(text(changed[n]) if n in changed else "" for n in tops)]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def fill(page: str, content: str) -> str:
    pattern = re.compile(f"{BEGIN}.*?{END}", re.DOTALL)
    if len(pattern.findall(page)) != 1:
        raise UserError(f"docs/profiles.md should hold {BEGIN} and then {END}, once")
    return pattern.sub(lambda _: f"{BEGIN}\n{content}\n{END}", page)


def main(root: Path = Path(".")) -> None:
    try:
        profiles = {name: params.read(root / "profiles" / f"{name}.yaml") for name in ("smoke", "paper")}
        path = root / "docs" / "profiles.md"
        old = path.read_text(encoding="utf-8")
        new = fill(old, table(params.read(root / "params.yaml"), profiles))
    except UserError as e:
        sys.exit(str(e))
    if new != old:
        files.write_text(path, new)


if __name__ == "__main__":
    main()
