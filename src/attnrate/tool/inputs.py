"""Images of a folder, texts of a file or random inputs, as batches in which no input is padded."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor
from tqdm import tqdm

from attnrate.core.errors import UserError
from attnrate.cut.study import Batches, each
from attnrate.spectra.watch import brief
from attnrate.tool.load import Loaded

SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
UNREADABLE = (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError)  # what pillow says of a file
RANDOM_TOKENS = 128

Item = tuple[dict[str, Tensor], Tensor | None]  # arguments of the model, and what it should say; batches of one


@dataclass(frozen=True)
class Inputs:
    items: Callable[[], Iterable[Item]] | Batches  # anew at each call: nothing but texts is kept
    about: dict  # for the provenance
    whole: bool = False  # items are batches of one's own


@dataclass(frozen=True)
class Given:
    """What a user may give as inputs."""

    images: Path | None = None
    text: Path | None = None
    random: int | None = None
    targets: Path | None = None  # lines for a decoder
    labels: Path | str | None = None  # a file, or "folders"
    tokens: int | None = None
    batch: int = 8
    seed: int = 0

    def check(self) -> None:
        """Before a model is loaded, which takes time."""
        if sum(source is not None for source in (self.images, self.text, self.random)) != 1:
            raise UserError("give one kind of inputs: --images FOLDER, --text FILE or --random N")
        for name, least in (("random", 2), ("tokens", 1), ("batch", 1), ("seed", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise UserError(f"--{name} {value}: should be {least} or more")
        if self.images is not None:
            images(self.images)
        if self.text is not None:
            texts(self.text)
        if self.labels is not None and self.random is not None:
            raise UserError("random inputs have no labels")

    def read(self, loaded: Loaded) -> Inputs:
        if self.images is not None:
            return of_images(loaded, self)
        return of_texts(loaded, self) if self.text is not None else at_random(loaded, self)


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


def labelled(given: Given, paths: list[Path] | None, number: int) -> list[Tensor | None]:
    """The class of each input: integers of a file, a line each, or the folders that images are in, sorted by name."""
    if given.labels is None:
        return [None] * number
    if given.labels == "folders":
        if paths is None:
            raise UserError("--labels without a file takes the folders of images as classes: name a file for texts")
        names = sorted({path.parent.name for path in paths})
        numbers = names if all(map(_number, names)) else range(len(names))
        classes = {name: int(n) for name, n in zip(names, numbers, strict=True)}
        if len(classes) < 2:
            raise UserError(f"{given.images}: --labels needs a folder for each class; all images are in one")
        return [torch.tensor([classes[path.parent.name]]) for path in paths]
    found = texts(Path(given.labels))
    if len(found) != number or not all(map(_number, found)):
        raise UserError(f"{given.labels}: should hold a class number a line for each of {number} inputs")
    return [torch.tensor([int(line)]) for line in found]


def _number(text: str) -> bool:
    return text.isdecimal() and len(text) < 10  # a longer one is a date or no class


def of_images(loaded: Loaded, given: Given) -> Inputs:
    _needs(loaded, texts=False)
    paths, prepare, total = images(given.images), loaded.reader(None), hashlib.sha256()
    for path in paths:
        total.update(path.read_bytes())
    labels = labelled(given, paths, len(paths))

    def read(path: Path) -> Tensor:
        try:
            with Image.open(path) as image:
                return prepare(image.convert("RGB"))
        except UNREADABLE as e:
            raise UserError(f"{path}: cannot be read as an image ({brief(e)})") from None

    def items() -> Iterator[Item]:
        return (({loaded.argument: read(path)}, label) for path, label in zip(paths, labels, strict=True))

    about = {"images": str(given.images), "number": len(paths), "sha256": total.hexdigest()}
    return Inputs(items, about)


def of_texts(loaded: Loaded, given: Given) -> Inputs:
    _needs(loaded, texts=True)
    lines, ids = texts(given.text), loaded.reader(given.tokens)
    labels, rows = labelled(given, None, len(lines)), [ids(line) for line in lines]
    after = rows
    if loaded.start is not None and given.targets:
        targets = texts(given.targets)
        if len(targets) != len(lines):
            raise UserError(f"{given.targets}: holds {len(targets)} lines, and {given.text} {len(lines)}")
        after = [ids(line, target=True) for line in targets]
    elif loaded.start is not None:
        loaded.notes.append("the decoder is given the input itself, since no --targets are given")
    if not min(row.shape[1] for row in rows + after):
        raise UserError(f"{given.text}: a line holds no token that the model knows")
    items = [_text(loaded, *each) for each in zip(rows, after, labels, strict=True)]
    # equal lengths side by side; the longest first, so that no table has to grow and memory runs out at once or never
    items.sort(key=lambda item: [x.shape[1] for x in item[0].values()], reverse=True)
    lengths = [row.shape[1] for row in rows]
    about = {
        "text": str(given.text),
        "number": len(rows),
        "sha256": hashlib.sha256(given.text.read_bytes()).hexdigest(),
        "tokens": {"least": min(lengths), "most": max(lengths)},
    }
    return Inputs(lambda: items, about)


def _text(loaded: Loaded, ids: Tensor, after: Tensor, label: Tensor | None) -> Item:
    """A decoder sees what it should say one token late; a language model is to say the next token."""
    named, target = {"input_ids": ids}, label
    if loaded.start is not None:
        first = torch.full((1, 1), loaded.start, dtype=ids.dtype)
        named["decoder_input_ids"] = torch.cat([first, after[:, :-1]], 1)
        target = after if label is None and loaded.kind == "language" else label
    elif loaded.kind == "language":
        target = torch.cat([ids[:, 1:], ids.new_full((1, 1), -100)], 1)
    return named, target


def at_random(loaded: Loaded, given: Given) -> Inputs:
    about = {"random": "normal", "number": given.random, "seed": given.seed}
    length = min(given.tokens or RANDOM_TOKENS, loaded.longest)
    if loaded.of_texts:
        about |= {"random": "uniform over tokens", "tokens": length}

    def items() -> Iterator[Item]:
        generator = torch.Generator().manual_seed(given.seed)
        for _ in range(given.random):
            tensor = loaded.random(length, generator)
            yield _text(loaded, tensor, tensor, None) if loaded.of_texts else ({loaded.argument: tensor}, None)

    return Inputs(items, about)


def of_batches(found: Batches) -> Inputs:
    """A list of batches, or a function that gives them anew; with labels or without."""
    return Inputs(found, {"batches": "given from Python"}, whole=True)


def _needs(loaded: Loaded, texts: bool) -> None:
    if loaded.of_texts != texts:
        raise UserError(
            f"this model takes {'texts: give --text' if loaded.of_texts else 'images: give --images'} or --random"
        )


def batches(loaded: Loaded, found: Inputs, size: int, progress: bool = False) -> Iterator[Item]:
    """Up to `size` neighbours of one shape at a time, where the model is; those of one's own as they are."""
    if found.whole:
        yield from tqdm(each(found.items), unit="batch", disable=None if progress else True)
        return
    with tqdm(total=found.about["number"], unit="input", disable=None if progress else True) as bar:
        group: list[Item] = []
        for item in found.items():
            if group and (len(group) == size or _shapes(item) != _shapes(group[0])):
                yield _joined(loaded, group)
                bar.update(len(group))
                group = []
            group.append(item)
        if group:
            yield _joined(loaded, group)
            bar.update(len(group))


def _shapes(item: Item) -> list:
    return [x.shape for x in item[0].values()]


def _joined(loaded: Loaded, group: list[Item]) -> Item:
    named = {key: loaded.place(torch.cat([item[0][key] for item in group])) for key in group[0][0]}
    target = None if group[0][1] is None else loaded.place(torch.cat([item[1] for item in group]))
    return named, target
