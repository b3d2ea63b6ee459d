"""reports/index.html: verdicts, then each figure and table beside the paper's numbers. No script, no network.

page.toml says what is on the page, page.html.j2 how it looks. Numbers come from claims.json, the tables and the
results, those of larger profiles from reports/published; settings from params.yaml.
"""

import base64
import io
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup, escape
from PIL import Image
from pydantic import BaseModel

from attnrate.core.errors import UserError
from attnrate.report import published, verdicts
from attnrate.report.claims.ledger import NOT, PARTLY, REPRODUCED, UNDECIDED, counts, gate, headline
from attnrate.report.tables import short

CONTENT = Path(__file__).with_name("page.toml")
TEMPLATE = Path(__file__).with_name("page.html.j2")
CLASSES = {REPRODUCED: "yes", PARTLY: "part", NOT: "no", UNDECIDED: "open"}


def content() -> dict:
    return tomllib.loads(CONTENT.read_text(encoding="utf-8"))


def facts(row: dict) -> dict[str, str]:
    """What is known of a claim's effect, by name; what it does not have is left out."""
    part, unit = verdicts.deciding(row), row["unit"]
    found = {"Measured": row["measured"], "The paper's": row["paper"]}
    if part:
        name = f" ({part['name']})" if part["name"] else ""
        found["Effect"] = f"{verdicts.effect(part, unit)}{name}"
        found["Interval"] = f"{100 * part['level']:.4g} %" if part["level"] else ""
        found["Margin"] = verdicts.margin(part, unit)
    elif row["test"] != "exact":
        found["Margin"] = verdicts.margin(row, unit)
    else:
        found["Spread"] = row["spread"]
    stuck = f", {part['dead']} of them stuck" if part and part["dead"] else ""
    found["Replicates"] = "" if row["replicates"] is None else f"{row['replicates']}{stuck}"
    found["Parts"] = "\n".join(verdicts.against(row)) if len(row["parts"]) > 1 else ""
    return {k: v for k, v in (found | {"Budget": gate(row), "Needs": row["needs"]}).items() if v}


def cell(row: dict | None) -> dict | None:
    """A claim in the column of a profile: its verdict and what decided it."""
    if row is None:
        return None
    part = verdicts.deciding(row)
    how = verdicts.effect(part, row["unit"]) if part else "exact" if row["exact"] and row["parts"] else row["measured"]
    n = f", n = {part['replicates']}" if part and part["replicates"] > 1 else ""
    return {"verdict": row["verdict"], "how": f"{how}{n}"}


def image(path: Path) -> dict:
    """A PNG as data: address, in lossless WebP: half the bytes, every pixel as it was (a palette shifts colours)."""
    with Image.open(path) as picture, io.BytesIO() as buffer:
        flat = Image.new("RGB", picture.size, "white")
        flat.paste(picture, mask=picture.getchannel("A") if picture.mode == "RGBA" else None)
        flat.save(buffer, "WEBP", lossless=True, method=6)
        data = base64.b64encode(buffer.getvalue()).decode()
        return {"src": f"data:image/webp;base64,{data}", "width": flat.width, "height": flat.height}


def markdown(text: str, deeper: int = 0) -> str:
    """HTML of Markdown with tables; headings become `deeper` levels smaller, wide tables scroll."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{int(token.tag[1]) + deeper}"
    html = parser.renderer.render(tokens, parser.options, {})
    return html.replace("<table>", '<div class="scroll" tabindex="0"><table>').replace("</table>", "</table></div>")


def maths(text: str) -> Markup:
    """m_h, ψ_{q,t} and e^-s with real indices and exponents."""
    html = re.sub(r"(?<!\w)(\w)_\{([^}]*)\}", r"\1<sub>\2</sub>", str(escape(text)))
    html = re.sub(r"(?<!\w)(\w)_([^\W²³]+?)(?![^\W_²³])", r"\1<sub>\2</sub>", html)
    return Markup(re.sub(r"\^(-?(?:\([^)]*\)|[\w.]*\w))", r"<sup>\1</sup>", html))


def number(text: str) -> str:
    """A number of a CSV with three digits; whole numbers and words as they are."""
    try:
        return short(float(text)) if any(c in text for c in ".e") else text
    except ValueError:
        return text


def csv(path: Path, columns: dict[str, str], keep: dict[str, list[str]]) -> dict:
    """Some columns under names of their own; of `keep` only those rows, in that order."""
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    for name, values in keep.items():
        table = table[table[name].isin(values)].sort_values(name, key=lambda c: c.map(values.index), kind="stable")
    return {"head": list(columns.values()), "rows": [[number(v) for v in row] for row in table[list(columns)].values]}


def text(value: Any) -> str:
    """A parameter's value as params.yaml spells it."""
    if isinstance(value, list):
        return ", ".join(map(text, value))
    return "null" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def leaves(group: BaseModel, prefix: str = "") -> Iterator[dict]:
    """Key, value and meaning of every parameter in a group and in the groups inside it."""
    for name, field in type(group).model_fields.items():
        key, value = prefix + (field.alias or name), getattr(group, name)
        if isinstance(value, BaseModel):
            yield from leaves(value, f"{key}.")
        else:
            yield {"key": key, "value": text(value), "about": field.description or ""}


def settings(params: BaseModel, names: list[str]) -> list[dict]:
    """What a section names: a parameter, or all those of a group."""
    known = list(leaves(params))
    return [leaf for name in names for leaf in known if f"{leaf['key']}.".startswith(f"{name}.")]


def item(entry: dict, reports: Path) -> dict:
    """A figure or a table of page.toml with what its file holds, and the files to link to."""
    if name := entry.get("figure"):
        paths = [reports / f"figures/{name}.{e}" for e in ("svg", "png")]
        found = {"image": image(paths[1]), "files": paths}
    elif name := entry.get("table"):
        paths = [reports / f"tables/{name}.{e}" for e in ("csv", "md", "tex")]
        found = {"html": markdown(paths[1].read_text(encoding="utf-8")), "files": paths}
    else:
        path = reports / "results" / entry["csv"]
        found = {"csv": csv(path, entry["columns"], entry.get("keep", {})), "files": [path]}
    return dict.fromkeys(("alt", "paper", "folded", "about")) | entry | found


def fill(section: dict, rows: dict[str, dict], params: BaseModel, reports: Path) -> dict:
    """A section of page.toml with what its files say."""
    unknown = [name for name in section["claims"] if name not in rows]
    if unknown:
        raise UserError(f"page.toml: section {section['id']} names unknown claims: {', '.join(unknown)}")
    judged, chosen = [rows[name] for name in section["claims"]], settings(params, section["settings"])
    return {
        **section,
        "judged": judged,
        "counts": counts(judged),
        "settings": chosen,
        "seeds": [s for s in chosen if s["key"].endswith("seeds")],
        "items": [item(entry, reports) for entry in section.get("item", [])],
        "data": [reports / "results" / name for name in section.get("data", [])],
    }


def render(rows: list[dict], params: BaseModel, root: Path = Path(".")) -> str:
    """The page as reports/index.html; its links are relative."""
    reports, notes = root / "reports", root / "docs" / "readings.md"
    given, columns = content(), published.columns(rows, reports / "published")
    rows, listed = published.headline(columns), given["section"]
    whys = {r["id"]: published.why(r["id"], columns, params.model_dump(by_alias=True)) for r in rows}
    by_id = {r["id"]: r for r in rows}
    rest = [name for name in by_id if name not in {c for s in listed for c in s["claims"]}]
    if rest:
        listed.append({"id": "more", "title": "More claims", "where": "", "about": "", "claims": rest, "settings": []})
    env = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    env.filters["maths"] = maths
    env.filters["link"] = lambda path: Path(os.path.relpath(path, reports)).as_posix()
    body = re.sub(r"\A# .*\n", "", notes.read_text(encoding="utf-8"))  # the page has its own heading
    return env.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        rows=rows,
        answer=headline(rows),
        counts=counts([r for r in rows if not r["ours"]]),
        picture=item(given["picture"], reports),
        columns=columns,
        cells={r["id"]: [cell(c.rows.get(r["id"])) for c in columns] for r in rows},
        scale=item(given["scale"], reports) if any(c.branches for c in columns) else None,
        facts={r["id"]: facts(r) | ({"Profiles": whys[r["id"]]} if whys[r["id"]] else {}) for r in rows},
        classes=CLASSES,
        signs=verdicts.SIGNS,
        meaning=verdicts.MEANING,
        profile=" and ".join(c.profile for c in columns if c.rows),
        sections=[fill(s, by_id, params, reports) for s in listed],
        readings=markdown(body, deeper=1),
        readings_file=notes,
        root=root,
        reports=reports,
    )
