"""Section 5.2 for a model of one's own: the singular values of every attention matrix before the softmax.

spectrum("vit_base_patch16_224", "out", images="folder")    # or `attnrate spectrum` on the command line
"""

import os
import platform
from collections.abc import Iterable, Iterator
from contextlib import chdir, suppress
from importlib.metadata import version
from pathlib import Path

import pandas as pd
from torch import Tensor
from tqdm import tqdm

from attnrate.core import files
from attnrate.core.errors import UserError
from attnrate.report.style.figure import save
from attnrate.report.tables import markdown
from attnrate.spectra.measure import Measured, measure
from attnrate.tool import draw, inputs
from attnrate.tool.decay import fits
from attnrate.tool.load import Loaded, digest, load

FIGURES = ("violins", "spectra")
OUTS = {"spectra.csv", "ranks.csv", "fits.json", "summary.md", "provenance.json"} | {
    f"{name}.{kind}" for name in FIGURES for kind in ("svg", "png")
}
SCALES = {"none": "σ_k", "tokens": "σ_k / number of tokens", "largest": "σ_k / σ_1"}


def spectrum(
    model: str,
    out: str | Path,
    *,
    images: str | Path | None = None,
    text: str | Path | None = None,
    random: int | None = None,
    weights: str | Path | None = None,
    pretrained: bool = False,
    normalisation: str = "none",
    tokens: int | None = None,
    batch: int = 8,
    seed: int = 0,
) -> Measured:
    """Measure a timm or transformers model on images, lines of text or random inputs, and write the folder `out`.

    Nothing is written before everything is computed; a folder is replaced only if this function made it.
    """
    out = _free(Path(out).resolve())
    if sum(source is not None for source in (images, text, random)) != 1:
        raise UserError("give one kind of inputs: --images FOLDER, --text FILE or --random N")
    for name, value, least in (("random", random, 2), ("tokens", tokens, 1), ("batch", batch, 1), ("seed", seed, 0)):
        if value is not None and value < least:
            raise UserError(f"--{name} {value}: should be {least} or more")
    paths = inputs.images(Path(images)) if images is not None else []
    lines = inputs.texts(Path(text)) if text is not None else []
    loaded = load(model, texts=bool(lines), weights=weights, pretrained=pretrained, seed=seed)
    if paths:
        found = inputs.of_images(loaded, Path(images), paths)
    elif lines:
        found = inputs.of_texts(loaded, Path(text), lines, tokens)
    else:
        found = inputs.at_random(loaded, random, tokens, seed)
    measured = measure(loaded.model, _batches(loaded, found, batch), normalisation)
    _write(out, measured, normalisation, provenance(model, loaded, found.about, measured, normalisation))
    return measured


def _batches(loaded: Loaded, found: inputs.Inputs, size: int) -> Iterator[dict[str, Tensor]]:
    with tqdm(total=found.about["number"], unit="input", disable=None) as bar:
        for batch in inputs.batches(found.tensors, size):
            yield {loaded.argument: batch}
            bar.update(len(batch))


def _free(out: Path) -> Path:
    """out, if writing it destroys nothing but an older result."""
    if out.is_dir() and (others := sorted({p.name for p in out.iterdir()} - OUTS)):
        raise UserError(f"{out}: is not empty (it holds {others[0]}); name a new folder")
    if out.exists() and not out.is_dir():
        raise UserError(f"{out}: is a file; name a new folder")
    return out


def provenance(model: str, loaded: Loaded, about: dict, measured: Measured, normalisation: str) -> dict:
    notes = [f"{what}: {_names(names)}" for what, names in measured.notes.items()]
    full = measured.spectra.k[measured.spectra.n == measured.inputs].max()
    if full < measured.spectra.k.max():
        notes.append(f"fits and figures stop at k = {full}, since the shortest input has no more tokens")
    packages = ("attnrate", "torch", "timm", "transformers", "numpy", "pillow")
    return {
        "model": model,
        "weights": {"source": loaded.weights, "sha256": digest(loaded.model)},
        "inputs": about,
        "normalisation": SCALES[normalisation],
        "layers": measured.layers,
        "notes": [*loaded.notes, *notes],
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
    }


def _names(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} … {names[-1]} ({len(names)} modules)"


def _write(out: Path, measured: Measured, normalisation: str, origin: dict) -> None:
    laws = fits(measured)
    source = origin["weights"]["source"]
    title = f"{origin['model']}{'' if source == origin['model'] else f', weights {source}'}, {measured.inputs} inputs"
    out.parent.mkdir(parents=True, exist_ok=True)
    with chdir(out.parent):  # drafts stand beside the folder, on the same disk
        with files.atomic(out.name) as draft:
            files.write_csv(draft / "spectra.csv", measured.spectra)
            files.write_csv(draft / "ranks.csv", measured.ranks)
            files.write_json(draft / "fits.json", laws)
            files.write_json(draft / "provenance.json", origin)
            files.write_text(draft / "summary.md", summary(measured, laws, origin))
            for name in FIGURES:
                save(name, getattr(draw, name)(measured, normalisation, title), draft)
        with suppress(OSError):  # others may be at work in it
            os.rmdir(files.SCRATCH)


def _range(values: Iterable[float]) -> str:
    values = list(values)
    return f"{min(values):.3g} to {max(values):.3g}" if values else "–"


def summary(measured: Measured, laws: list[dict], origin: dict) -> str:
    rows = []
    for layer, part in measured.ranks.groupby("layer"):
        fitted = [law for law in laws if law["layer"] == layer and law["slope"]]
        power = sum(law["laws"]["power b=0"]["rss"] < law["laws"]["exponential b=0"]["rss"] for law in fitted)
        rows.append(
            {
                "layer": layer,
                "module": measured.layers[layer - 1],
                "heads": len(part),
                "effective rank": _range(part.effective),
                "90 % energy": _range(part.energy90),
                "99 % energy": _range(part.energy99),
                "slope of log σ_k in log k": _range(law["slope"]["slope"] for law in fitted),
                "power law nearer than exponential": f"{power} of {len(fitted)} heads",
            }
        )
    given = origin["inputs"]
    kind = next(k for k in ("images", "text", "random") if k in given)
    lines = [
        f"# Attention spectra of {origin['model']}",
        "",
        f"Singular values of QKᵀ · scale before mask and softmax, over {measured.inputs} inputs "
        f"({kind}: {given[kind]}).",
        f"Values are {origin['normalisation']}. Weights: {origin['weights']['source']}.",
        "",
        *(f"- {note}\n" for note in origin["notes"]),
    ]
    caption = "Least and greatest over the heads of a layer; each head's value is a mean over inputs."
    return "\n".join(lines) + "\n" + markdown(pd.DataFrame(rows), caption) + "\n![](violins.png)\n\n![](spectra.png)\n"
