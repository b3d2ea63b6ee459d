"""Libraries of models, which may be missing, and the hub, which may be out of reach."""

import difflib
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attnrate.core.errors import UserError
from attnrate.spectra.watch import brief

SECONDS = 5  # that the hub may take to answer


def library(name: str) -> Any:
    """A module, or None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as e:
        if e.name != name:
            raise
        return None


def nowhere(name: str, libraries: tuple[str, ...] = ("timm", "torchvision")) -> str:
    """Which of these libraries have no such model, and which cannot be asked."""
    has = [each for each in libraries if library(each)]
    lacks = [each for each in libraries if each not in has]
    told = [f"{' and '.join(has)} {'have' if len(has) > 1 else 'has'} no such model{near(name)}"] if has else []
    if lacks:
        told.append(f"{_listed(lacks)} not installed: pip install {' '.join(lacks)}")
    return ", ".join(told)


def _listed(names: list[str]) -> str:
    return f"{names[0]} is" if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]} are"


def near(name: str) -> str:
    timm, vision = library("timm"), library("torchvision")
    names = (timm.list_models() if timm else []) + (vision.models.list_models() if vision else [])
    close = difflib.get_close_matches(name, names, 3)
    return f" (did you mean {', '.join(close)}?)" if close else ""


@contextmanager
def asked() -> Iterator[None]:
    """Without a word of the hub's own, and without the hub where it does not answer: what is cached is still found.

    The hub's own six tries at each file take half a minute and print two lines each.
    """
    hub = library("huggingface_hub")
    if hub is None:
        yield
        return
    hub.utils.logging.set_verbosity_error()
    before = hub.constants.HF_HUB_OFFLINE
    try:
        hub.utils.get_session().head(hub.constants.ENDPOINT, timeout=SECONDS)
    except Exception:  # whichever library its session is of
        hub.constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        hub.constants.HF_HUB_OFFLINE = before


def pretrained(kind: type, name: str, **options) -> Any:
    """What a class of transformers makes of a directory or a name on the hub."""
    try:
        if Path(name).exists():
            return kind.from_pretrained(name, **options)
        with asked():
            return kind.from_pretrained(name, **options)
    except Exception as e:  # whatever the network, the hub or transformers have to say
        known = "" if Path(name).exists() else f"{nowhere(name)}, and "
        raise UserError(f"{name}: {known}transformers' {kind.__name__} cannot load it ({brief(e)})") from None


def tokenizer(kind: type, name: str, **options) -> Any:
    """Without its files transformers makes one that knows no word, and every text would be the same."""
    made = pretrained(kind, name, **options)
    files = {*made.vocab_files_names.values(), "tokenizer.json"}
    if Path(name).is_dir() and not any((Path(name) / file).exists() for file in files):
        if len(made) < len(made.all_special_ids) + 3:  # one of bytes needs no files
            raise UserError(f"{name}: has no tokenizer ({', '.join(sorted(files))}), which --text needs")
    return made
