"""What the tests of the report share: the limits of criteria.toml, made-up results, figures drawn twice."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from attnrate.core import files
from attnrate.report.claims.ledger import read_criteria
from attnrate.report.style import figure

CRITERIA = read_criteria()
LIMITS = {name: c["limits"] for name, c in CRITERIA.items()}


def write(folder: Path, results: dict[str, pd.DataFrame | dict]) -> Path:
    """Tables as CSV and dictionaries as JSON, as stages write them; the folder they are in."""
    for name, content in results.items():
        (files.write_csv if isinstance(content, pd.DataFrame) else files.write_json)(folder / name, content)
    return folder


def same_bytes(draw: Callable[[], figure.plt.Figure]) -> None:
    """Two drawings are the same files, with neither a date nor an open figure left behind."""
    before = figure.plt.get_fignums()
    for folder in ("a", "b"):
        figure.save("drawn", draw(), Path(folder))
    assert figure.plt.get_fignums() == before
    svg, png = (Path(f"a/drawn.{kind}").read_bytes() for kind in ("svg", "png"))
    assert svg == Path("b/drawn.svg").read_bytes() and png == Path("b/drawn.png").read_bytes()
    assert b"<dc:date>" not in svg and png.startswith(b"\x89PNG")
