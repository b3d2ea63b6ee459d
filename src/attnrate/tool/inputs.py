"""Images of a folder, texts of a file or random inputs, as batches in which no input is padded."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from attnrate.core.errors import UserError
from attnrate.tool.load import Loaded

SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
RANDOM_TOKENS = 128


@dataclass(frozen=True)
class Inputs:
    tensors: Iterable[Tensor]  # batches of one
    about: dict  # for the provenance


def images(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder of images")
    found = sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
    if len(found) < 2:
        raise UserError(f"{folder}: holds {len(found)} images ({', '.join(sorted(SUFFIXES))}); two are needed at least")
    return found


def texts(file: Path) -> list[str]:
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as e:
        raise UserError(f"{file}: cannot be read as a text file ({e})") from None
    if len(found := [line for line in lines if line]) < 2:
        raise UserError(f"{file}: holds {len(found)} lines with text; two are needed at least, one for each input")
    return found


def of_images(loaded: Loaded, folder: Path, paths: list[Path]) -> Inputs:
    _needs(loaded, texts=False)
    prepare, total = loaded.reader(None), hashlib.sha256()
    for path in paths:
        total.update(path.read_bytes())

    def read(path: Path) -> Tensor:
        try:
            with Image.open(path) as image:
                return prepare(image.convert("RGB"))
        except OSError as e:
            raise UserError(f"{path}: cannot be read as an image ({e})") from None

    about = {"images": str(folder), "number": len(paths), "sha256": total.hexdigest()}
    return Inputs(map(read, paths), about)


def of_texts(loaded: Loaded, file: Path, lines: list[str], tokens: int | None) -> Inputs:
    _needs(loaded, texts=True)
    rows = sorted(map(loaded.reader(tokens), lines), key=lambda row: row.shape[1])  # equal lengths side by side
    lengths = [row.shape[1] for row in rows]
    if not lengths[0]:
        raise UserError(f"{file}: a line holds no token that the model knows")
    about = {
        "text": str(file),
        "number": len(rows),
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "tokens": {"least": lengths[0], "most": lengths[-1]},
    }
    return Inputs(rows, about)


def at_random(loaded: Loaded, number: int, tokens: int | None, seed: int) -> Inputs:
    generator, about = torch.Generator().manual_seed(seed), {"random": "normal", "number": number, "seed": seed}
    length = min(tokens or RANDOM_TOKENS, loaded.longest)
    if loaded.of_texts:
        about |= {"random": "uniform over tokens", "tokens": length}
    return Inputs((loaded.random(length, generator) for _ in range(number)), about)


def _needs(loaded: Loaded, texts: bool) -> None:
    if loaded.of_texts != texts:
        raise UserError(
            f"this model takes {'texts: give --text' if loaded.of_texts else 'images: give --images'} or --random"
        )


def batches(tensors: Iterable[Tensor], size: int) -> Iterator[Tensor]:
    """Up to `size` neighbours of one shape at a time."""
    batch: list[Tensor] = []
    for tensor in tensors:
        if batch and (len(batch) == size or tensor.shape != batch[0].shape):
            yield torch.cat(batch)
            batch = []
        batch.append(tensor)
    if batch:
        yield torch.cat(batch)
