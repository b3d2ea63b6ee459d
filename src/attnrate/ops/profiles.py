"""What each profile changes, as the table of docs/profiles.md, which `make readme` writes."""

from typing import Any

from attnrate.report.published import flatten


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
