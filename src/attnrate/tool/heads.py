"""How large must the heads of a model be? `attnrate heads`, and for any module and batches `advise`.

heads("vit_b_16", "out", images="folder")
heads_of(my_module, batches, "out")    # a list of batches, or a function that gives them anew; (inputs, labels) each
found = advise(my_module, batches)     # the same without a folder
"""

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor, nn

from attnrate.core import files
from attnrate.core.errors import UserError
from attnrate.cut import losses
from attnrate.cut.advice import BEST, Advice, advise
from attnrate.cut.export import check, restore
from attnrate.cut.export import save as save_weights
from attnrate.cut.export import smaller as cut_weights
from attnrate.cut.origins import origins
from attnrate.cut.study import Batches
from attnrate.report.style.figure import save
from attnrate.report.tables import markdown, short
from attnrate.tool import draw_heads, results
from attnrate.tool.inputs import Given, Inputs, batches, of_batches
from attnrate.tool.load import Loaded, digest, load, own

__all__ = ["advise", "heads", "heads_of"]

CUT = "cut.safetensors"
OUTS = {"errors.csv", "tails.csv", "advice.json", "summary.md", "heads.svg", "heads.png", CUT}
RANDOM = "weights are random: what is advised holds for the architecture as it starts, not for a trained model"
METHODS = {
    "scores": "each input's own best (an oracle)",
    "weights": "SVD of W_Qᵀ W_K with biases",
    "data": "SVD of W_Qᵀ W_K with biases, whitened by the inputs",
}


def heads(
    model: str,
    out: str | Path,
    *,
    images: str | Path | None = None,
    text: str | Path | None = None,
    random: int | None = None,
    targets: str | Path | None = None,
    labels: str | Path | None = None,
    sizes: Sequence[int] | None = None,
    tolerance: float = 0.01,
    export: bool = False,
    weights: str | Path | None = None,
    pretrained: bool = False,
    tokens: int | None = None,
    batch: int = 8,
    seed: int = 0,
    device: str = "auto",
    dtype: str = "float32",
    revision: str | None = None,
) -> Advice:
    """Cut the heads of a model to several sizes, measure what that does, and write the folder `out`.

    labels: a file with a class number a line, or "folders". Nothing is written before everything is computed.
    """
    out = _free(out, tolerance)
    paths = {k: None if v is None else Path(v) for k, v in (("images", images), ("text", text), ("targets", targets))}
    given = Given(**paths, random=random, labels=labels, tokens=tokens, batch=batch, seed=seed)
    given.check()
    loaded = load(
        model,
        texts=text is not None,
        whole=True,
        weights=weights,
        pretrained=pretrained,
        seed=seed,
        device=device,
        dtype=dtype,
        revision=revision,
    )
    if labels is not None and loaded.kind == "features":
        raise UserError(f"--labels: {model} has no classifier with these weights, only features")
    kind = "classes" if labels is not None else loaded.kind
    return _written(out, model, loaded, given.read(loaded), kind, sizes, tolerance, export, batch)


def heads_of(
    model: nn.Module,
    inputs: Batches,
    out: str | Path,
    *,
    kind: str | None = None,
    sizes: Sequence[int] | None = None,
    tolerance: float = 0.01,
    export: bool = False,
) -> Advice:
    """The same of a module and batches of one's own: what its forward takes, or (that, labels), without padding.

    kind, of loss: one of `losses.KINDS`; without it, what labels and outputs ask for.
    """
    out, loaded = _free(out, tolerance), own(model)
    return _written(out, loaded.weights, loaded, of_batches(inputs), kind, sizes, tolerance, export)


def _free(out: str | Path, tolerance: float) -> Path:
    if not tolerance >= 0:
        raise UserError(f"--tolerance {tolerance}: should be 0 or more")
    return results.free(Path(out).resolve(), OUTS)


def _written(
    out: Path,
    model: str,
    loaded: Loaded,
    read: Inputs,
    kind: str | None,
    sizes: Sequence[int] | None,
    tolerance: float,
    export: bool,
    batch: int = 1,
) -> Advice:
    first = next(batches(loaded, read, batch))[0]
    if export:
        check(loaded.model, origins(loaded.model, first))
    found = advise(
        loaded.model,
        lambda: batches(loaded, read, batch),
        sizes=sizes,
        tolerance=tolerance,
        kind=kind,
        progress=True,
    )
    smaller = cut_weights(loaded.model, found) if export else None
    about = read.about | {"number": found.scan.inputs}
    results.write(out, lambda draft: _fill(draft, model, loaded, about, found, smaller, first))
    return found


def _fill(
    draft: Path,
    model: str,
    loaded: Loaded,
    about: dict,
    found: Advice,
    smaller: tuple | None,
    first: Mapping[str, Tensor] | Tensor,
) -> None:
    random = loaded.weights.startswith("random,")
    record = {
        "model": model,
        "weights": {"source": loaded.weights, "sha256": digest(loaded.model)},
        "inputs": about,
        "loss": losses.KINDS[found.scan.kind],
        "tolerance": found.tolerance,
        "sizes": found.sizes,
        "layers": [{"module": x.name, "kind": x.kind, "heads": x.heads, "size": x.size} for x in found.scan.layers],
        "least": found.least.to_dict("records"),
        "advised": list(found.advised().sizes.values()),
        "savings": found.savings,
        "fits": found.fits,
        "notes": [*loaded.notes, *found.notes, *filter(None, [found.blind, random and RANDOM])],
        "versions": results.versions(),
    }
    draft.mkdir()
    if smaller is not None:
        record["export"] = _export(draft / CUT, loaded, found, smaller, first)
    files.write_csv(draft / "errors.csv", found.errors)
    files.write_csv(draft / "tails.csv", found.tails)
    files.write_json(draft / "advice.json", record)
    files.write_text(draft / "summary.md", summary(found, record))
    beside = "" if loaded.weights == model else f", weights {loaded.weights}"
    save("heads", draw_heads.figure(found, f"{model}{beside}, {found.scan.inputs} inputs"), draft)


@torch.no_grad()
def _export(path: Path, loaded: Loaded, found: Advice, smaller: tuple, first: Mapping[str, Tensor] | Tensor) -> dict:
    """Write the checkpoint, load it into a copy of the model, and compare with the cut that was measured."""
    save_weights(path, *smaller)
    again = restore(copy.deepcopy(loaded.model), path).eval()
    again = losses.outputs(again(**first) if isinstance(first, Mapping) else again(first)).float()
    wanted = found.study.outputs(first, found.advised()).float()
    full = sum(t.numel() * t.element_size() for t in loaded.model.state_dict().values())
    return {
        "file": CUT,
        "bytes": path.stat().st_size,
        "bytes_of_full": full,
        "tensors": sorted(smaller[1]),
        "difference": float((again - wanted).norm() / wanted.norm()),
    }


def _share(part: dict) -> str:
    return f"{part['saved'] / part['of']:.0%} of {part['of']:,.0f}" if part["of"] else "–"


def summary(found: Advice, record: dict) -> str:
    given = record["inputs"]
    kind = next(iter(given))
    method = BEST
    least = found.least[found.least.method == method].set_index("layers")
    one = least.loc["all"]
    told = (
        f"**{one.mh} of {max(found.sizes)}** is the least head size m_h, of those tried, that keeps the loss within "
        f"{found.tolerance:.3g} when all layers are cut at once{'' if one.sure else ' (its interval does not)'}."
    )
    lines = [
        f"# Heads of {record['model']}",
        "",
        f"**No size is advised**: {found.blind}" if found.blind else told,
        "",
        f"{found.scan.inputs} inputs ({kind}: {given[kind]}). Weights: {record['weights']['source']}. Loss: "
        f"{record['loss']}. Cut: {METHODS[method]}.",
        "",
        *(f"- {note}\n" for note in record["notes"]),
    ]
    together = found.errors[(found.errors.layers == "advised") & (found.errors.method == method)]
    rows = []
    for i, layer in enumerate(found.scan.layers, 1):
        name = str(i) if str(i) in least.index else "all"
        rows.append(
            {
                "layer": i,
                "module": layer.name,
                "kind": layer.kind,
                "heads": f"{layer.heads} of {layer.size}",
                "least m_h, alone": least.loc[name].mh,
                "interval keeps it too": "yes" if least.loc[name].sure else "no",
            }
        )
    caption, beyond = "The least m_h of each layer, others uncut.", ""
    if len(together):
        change = together.change.iloc[0]
        held = "which keeps" if change <= found.tolerance else "which does not keep"
        beyond = "" if change <= found.tolerance else ", beyond the tolerance"
        caption += f" All of these together change the loss by {short(abs(change))}, {held} the tolerance."
    lines += [markdown(pd.DataFrame(rows), caption)]
    table = found.errors[found.errors.layers == "all"].merge(found.tails, on=["layers", "mh"])
    ends = zip(table.change, table.change_low, table.change_high, strict=True)
    columns = {
        "cut by": table.method,
        "m_h": table.mh,
        "scores, relative error": table.scores.map(short),
        "attention outputs": table.outputs.map(short),
        "loss": table.loss.map(short),
        "change [95 %]": [f"{change:.3g} [{low:.3g}, {high:.3g}]" for change, low, high in ends],
        "tail sum": table["tail"].map(short),
    }
    if found.scan.kind == "classes":
        columns["accuracy"] = table.accuracy.map(short)
    text = "All layers at once. Tail sum: Σ_{k > m_h} σ_k² / Σ σ_k², eq. (11). Cut by " + "; ".join(
        f"{k}: {v}" for k, v in METHODS.items() if k in set(table.method)
    )
    lines += [markdown(pd.DataFrame(columns), text + ".")]
    saved = [
        {
            "heads": "one m_h for all" if each["layers"] == "all" else f"each layer its own{beyond}",
            "parameters of W_Q, W_K": _share(each["parameters"]),
            "FLOPs of queries, keys, scores": _share(each["flops"]),
            "key cache, bytes a token": _share(each["key_cache"]),
        }
        for each in found.savings
    ]
    lines += [markdown(pd.DataFrame(saved), "Saved by the least sizes.")]
    if "export" in record:
        e = record["export"]
        lines += [
            f"`{e['file']}`: {e['bytes']:,} bytes instead of {e['bytes_of_full']:,}; loaded again, outputs differ by "
            f"{e['difference']:.1e} from the cut that was measured.",
            "",
        ]
    return "\n".join(lines) + "\n![](heads.png)\n"
