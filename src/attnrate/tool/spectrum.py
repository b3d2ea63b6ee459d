"""Section 5.2 for a model of one's own: the singular values of every attention matrix, before the softmax and after.

spectrum("vit_base_patch16_224", "out", images="folder")    # or `attnrate spectrum` on the command line
spectrum_of(my_module, batches, "out")                      # a list of batches, or a function that gives them anew
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from torch import nn

from attnrate.core import files
from attnrate.cut.study import Batches
from attnrate.report.style.figure import save
from attnrate.report.tables import markdown
from attnrate.spectra.measure import SPECTRA, Measured, measure_all
from attnrate.tool import draw, results
from attnrate.tool.against import same, second, shape
from attnrate.tool.decay import fits
from attnrate.tool.inputs import Given, Inputs, batches, of_batches
from attnrate.tool.load import Loaded, digest, load, own

FIGURES = ("violins", "spectra", "heatmap")
OUTS = {"spectra.csv", "ranks.csv", "fits.json", "summary.md", "provenance.json"} | {
    f"{name}.{kind}" for name in FIGURES for kind in ("svg", "png")
}
AGAINST = {"against_spectra.csv", "against_ranks.csv", "against.svg", "against.png"}
SCALES = {"none": "σ_k", "tokens": "σ_k / number of tokens", "largest": "σ_k / σ_1"}
WHAT = {
    "scores": "QKᵀ · scale before mask and softmax",
    "centred": "the same without what is constant in a row, which the softmax ignores",
    "softmax": "the attention matrix after mask and softmax",
}


@dataclass(frozen=True)
class Run:
    """One model, measured."""

    loaded: Loaded
    found: dict[str, Measured]
    about: dict  # of the inputs

    @property
    def main(self) -> Measured:
        return next(iter(self.found.values()))


def spectrum(
    model: str,
    out: str | Path,
    *,
    images: str | Path | None = None,
    text: str | Path | None = None,
    random: int | None = None,
    targets: str | Path | None = None,
    weights: str | Path | None = None,
    pretrained: bool = False,
    against: str | None = None,
    which: Sequence[str] = SPECTRA,
    normalisation: str = "none",
    tokens: int | None = None,
    batch: int = 8,
    seed: int = 0,
    device: str = "auto",
    dtype: str = "float32",
    revision: str | None = None,
) -> Measured:
    """Measure a model on images, lines of text or random inputs, and write the folder `out`.

    against: a second checkpoint of the same kind of model, or "untrained". Nothing is written before everything is
    computed; a folder is replaced only if this function made it. Returns the spectra of `which` that come first.
    """
    out = results.free(Path(out).resolve(), OUTS | AGAINST)
    paths = {k: None if v is None else Path(v) for k, v in (("images", images), ("text", text), ("targets", targets))}
    given = Given(**paths, random=random, tokens=tokens, batch=batch, seed=seed)
    given.check()
    options = {"texts": text is not None, "seed": seed, "device": device, "dtype": dtype}
    plain = {"weights": weights, "pretrained": pretrained, "revision": revision}

    models = [load(model, **options, **plain), *([second(against, model, options, **plain)] if against else [])]
    pairs = [(loaded, given.read(loaded)) for loaded in models]
    return _written(out, pairs, (model, against), which, normalisation, batch)


def spectrum_of(
    model: nn.Module,
    inputs: Batches,
    out: str | Path,
    *,
    against: nn.Module | None = None,
    which: Sequence[str] = SPECTRA,
    normalisation: str = "none",
) -> Measured:
    """The same of a module and batches of one's own, each of which is what its forward takes, without padding."""
    out = results.free(Path(out).resolve(), OUTS | AGAINST)
    models = [own(model), *([] if against is None else [own(against, " beside it")])]
    names = (models[0].weights, None if against is None else models[1].weights)
    return _written(out, [(loaded, of_batches(inputs)) for loaded in models], names, which, normalisation)


def _written(
    out: Path,
    pairs: list[tuple[Loaded, Inputs]],
    names: tuple[str, str | None],
    which: Sequence[str],
    normalisation: str,
    batch: int = 1,
) -> Measured:
    """names: of the model and of what it is compared with."""

    def measured(loaded: Loaded, found: Inputs) -> Run:
        inputs = (named for named, _ in batches(loaded, found, batch, progress=True))
        spectra = measure_all(loaded.model, inputs, normalisation, which)
        return Run(loaded, spectra, found.about | {"number": next(iter(spectra.values())).inputs})

    if len(pairs) > 1:
        same(*names, *(shape(*pair) for pair in pairs))
    run, *others = [measured(*pair) for pair in pairs]
    other = others[0] if others else None
    origin = provenance(names[0], run, normalisation, names[1], other)
    results.write(out, lambda draft: _fill(draft, run, other, normalisation, origin))
    return run.main


def provenance(model: str, run: Run, normalisation: str, against: str | None, other: Run | None) -> dict:
    main = run.main
    notes = [f"{what}: {results.names(names)}" for what, names in main.notes.items()]
    full = main.spectra.k[main.spectra.n == main.inputs].max()
    if full < main.spectra.k.max():
        notes.append(f"fits and figures stop at k = {full}, since the shortest input has no more tokens")
    beside = {"against": {"name": against, "weights": _weights(other.loaded)}} if other else {}
    return beside | {
        "model": model,
        "weights": _weights(run.loaded),
        "inputs": run.about,
        "normalisation": SCALES[normalisation],
        "spectra": {name: WHAT[name] for name in run.found},
        "layers": main.layers,
        "kinds": main.kinds,
        "notes": [*run.loaded.notes, *notes],
        "device": str(run.loaded.device),
        "dtype": str(run.loaded.dtype).removeprefix("torch."),
        "versions": results.versions(),
    }


def _weights(loaded: Loaded) -> dict:
    return {"source": loaded.weights, "sha256": digest(loaded.model)}


def _joined(found: dict[str, Measured], table: str) -> pd.DataFrame:
    return pd.concat([getattr(each, table).assign(spectrum=name) for name, each in found.items()], ignore_index=True)


def _fill(draft: Path, run: Run, other: Run | None, normalisation: str, origin: dict) -> None:
    source = origin["weights"]["source"]
    beside = "" if source == origin["model"] else f", weights {source}"
    title = f"{origin['model']}{beside}, {run.main.inputs} inputs"
    laws = {name: fits(found) for name, found in run.found.items()}
    for name in ("spectra", "ranks"):
        table = _joined(run.found, name)
        files.write_csv(draft / f"{name}.csv", table[["spectrum", *table.columns.drop("spectrum")]])
    files.write_json(draft / "fits.json", [{"spectrum": name, **law} for name, each in laws.items() for law in each])
    files.write_json(draft / "provenance.json", origin)
    files.write_text(draft / "summary.md", summary(run, laws, origin))
    for name in ("violins", "spectra"):
        save(name, getattr(draw, name)(run.main, normalisation, title), draft)
    save("heatmap", draw.heatmap(run.found, laws, title), draft)
    if other:
        for name in ("spectra", "ranks"):
            table = _joined(other.found, name)
            files.write_csv(draft / f"against_{name}.csv", table[["spectrum", *table.columns.drop("spectrum")]])
        labels = (source, origin["against"]["weights"]["source"])
        save("against", draw.against(run.main, other.main, labels, normalisation, origin["model"]), draft)


def _range(values: Iterable[float]) -> str:
    values = list(values)
    return f"{min(values):.3g} to {max(values):.3g}" if values else "–"


def _table(measured: Measured, laws: list[dict]) -> pd.DataFrame:
    rows = []
    for layer, part in measured.ranks.groupby("layer"):
        fitted = [law for law in laws if law["layer"] == layer and law["slope"]]
        power = sum(law["laws"]["power b=0"]["rss"] < law["laws"]["exponential b=0"]["rss"] for law in fitted)
        rows.append(
            {
                "layer": layer,
                "module": measured.layers[layer - 1],
                "kind": measured.kinds[layer - 1],
                "heads": len(part),
                "effective rank": _range(part.effective),
                "90 % energy": _range(part.energy90),
                "99 % energy": _range(part.energy99),
                "slope of log σ_k in log k": _range(law["slope"]["slope"] for law in fitted),
                "power law nearer than exponential": f"{power} of {len(fitted)} heads",
            }
        )
    return pd.DataFrame(rows)


def summary(run: Run, laws: dict[str, list[dict]], origin: dict) -> str:
    given = origin["inputs"]
    kind = next(iter(given))
    lines = [
        f"# Attention spectra of {origin['model']}",
        "",
        f"Singular values over {run.main.inputs} inputs ({kind}: {given[kind]}). Values are {origin['normalisation']}. "
        f"Weights: {origin['weights']['source']}.",
        "",
        *(f"Beside it: {x['name']}, weights {x['weights']['source']}.\n" for x in [origin.get("against")] if x),
        *(f"- {note}\n" for note in origin["notes"]),
    ]
    caption = "Least and greatest over the heads of a layer; each head's value is a mean over inputs."
    for name, found in run.found.items():
        lines += [f"## {name.capitalize()}: {WHAT[name]}", "", markdown(_table(found, laws[name]), caption)]
    pictures = [*FIGURES, *(["against"] if "against" in origin else [])]
    return "\n".join(lines) + "\n" + "\n\n".join(f"![]({name}.png)" for name in pictures) + "\n"
