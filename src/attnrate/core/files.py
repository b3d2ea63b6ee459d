"""Files that are whole or not there: written in .scratch/, then moved into place. Same content, same bytes."""

import json
import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

SCRATCH = Path(".scratch")


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """A path to write to (a file or a new directory) that becomes `path` only when the block ends well."""
    path = Path(path)
    SCRATCH.mkdir(exist_ok=True)
    draft = SCRATCH / f"{path.name}.{os.getpid()}"
    try:
        yield draft
        path.parent.mkdir(parents=True, exist_ok=True)
        if draft.is_dir() and path.is_dir():
            shutil.rmtree(path)
        os.replace(draft, path)
    finally:
        if draft.is_dir():
            shutil.rmtree(draft)
        else:
            draft.unlink(missing_ok=True)


def significant(value: Any, digits: int = 6) -> Any:
    """value with every float in it rounded to six significant digits."""
    if isinstance(value, dict):
        return {k: significant(v, digits) for k, v in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [significant(v, digits) for v in value]
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.{digits}g}") if math.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value


def write_json(path: str | Path, content: Any, digits: int = 6) -> None:
    with atomic(path) as draft:
        text = json.dumps(significant(content, digits), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
        draft.write_text(text + "\n", encoding="utf-8")


def read_json(path: str | Path) -> Any:
    return json.loads(Path(path).read_text(encoding="utf-8"))


def write_csv(path: str | Path, table: pd.DataFrame) -> None:
    with atomic(path) as draft:
        table.to_csv(draft, index=False, float_format="%.6g", lineterminator="\n")


def write_text(path: str | Path, text: str) -> None:
    with atomic(path) as draft:
        draft.write_text(text, encoding="utf-8")
