"""Files that are whole or not there: written in .scratch/, then moved into place. Same content, same bytes."""

import errno
import glob
import json
import math
import os
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
from safetensors import SafetensorError

from attnrate.core.errors import UserError

SCRATCH = Path(".scratch")
RESTORE = "`dvc checkout` restores it"
DAMAGED = (OSError, EOFError, ValueError, TypeError, LookupError, RuntimeError, MemoryError)
DAMAGED += (zipfile.BadZipFile, zlib.error, SafetensorError)


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """A path to write to (a file or a new directory) that becomes `path` only when the block ends well."""
    path = Path(path)
    SCRATCH.mkdir(exist_ok=True)
    name = "-".join(part for part in path.parts if part != path.anchor)
    for left in (f for n in (name, f"{SCRATCH}-{name}") for f in SCRATCH.glob(f"{glob.escape(n)}.draft*")):
        remove(left)  # of a run that was killed, and of what went into it: an out has one writer
    draft = SCRATCH / f"{name}.draft{os.getpid()}"
    try:
        yield draft
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():  # a file is replaced at once
            shutil.rmtree(path)
        os.replace(draft, path)
    except OSError as e:
        if e.filename is None or str(e.filename).startswith(str(draft)):
            e.filename = str(path)  # the user knows the out, not its draft
        raise
    finally:
        remove(draft)


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


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
    text = json.dumps(significant(content, digits), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def read_json(path: str | Path) -> Any:
    return json.loads(Path(path).read_text(encoding="utf-8"))


@contextmanager
def reading(path: str | Path, remedy: str = RESTORE) -> Iterator[BinaryIO]:
    """The open file; whatever is wrong with it is told in one line."""
    try:
        with open(path, "rb") as f:
            yield f
    except FileNotFoundError:
        raise
    except DAMAGED as e:
        why = " ".join(str(e).split())[:200] or type(e).__name__
        raise UserError(f"{path}: cannot be read ({why}); {remedy}") from None


def read_npz(path: str | Path, remedy: str = RESTORE) -> dict[str, np.ndarray]:
    """Every array of an npz file, all numbers finite; nothing is ever unpickled."""
    with reading(path, remedy) as f, np.load(f, allow_pickle=False) as z:
        arrays = {name: z[name] for name in z.files}
        if wrong := [n for n, a in arrays.items() if a.dtype.kind == "f" and not np.isfinite(a).all()]:
            raise ValueError(f"{', '.join(wrong)}: numbers that are not finite")
    return arrays


def read_weights(path: str | Path) -> dict:
    """Every tensor of a safetensors file, all numbers finite."""
    from safetensors.torch import load_file  # two seconds that figures need not pay

    with reading(path):
        tensors = load_file(path)
        if wrong := [n for n, t in tensors.items() if not t.isfinite().all()]:
            raise ValueError(f"{', '.join(wrong)}: weights that are not finite")
    return tensors


def write_csv(path: str | Path, table: pd.DataFrame) -> None:
    with atomic(path) as draft:
        table.to_csv(draft, index=False, float_format="%.6g", lineterminator="\n")


def write_npz(path: str | Path, arrays: Mapping[str, Any]) -> None:
    with atomic(path) as draft, draft.open("wb") as f:
        np.savez(f, **arrays)


def write_text(path: str | Path, text: str) -> None:
    with atomic(path) as draft:
        draft.write_text(text, encoding="utf-8")


def write_weights(path: str | Path, tensors: Mapping[str, Any], state: str | None = None) -> None:
    """A safetensors file, with `state` as its metadata; what it could not write is an OSError, as for any file."""
    from safetensors.torch import save_file

    try:
        save_file({k: v.detach().cpu().contiguous() for k, v in tensors.items()}, path, state and {"state": state})
    except SafetensorError as e:
        raise OSError(errno.EIO, str(e), str(path)) from None
