"""A ViT that others pretrained: its weights under timm's names, and Figure 2's singular values on it.

heads.csv has ranks and spread of every head within each of several disjoint groups of test images, `trained`, and
beside it `untrained`, another model for each group; values.csv the singular values of the last layer, mean over groups;
quantiles.csv the first head's in the first and in the last layer, over images. `centred` is without what is constant in
a row, as the softmax sees it; what is only compared is taken on the first images of a group. The folder of data has
nothing but the weights: trainings may start from them, and should not wait for spectra.
"""

import launcher  # noqa: F401

from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from attnrate import cores
from attnrate.core import files, stage
from attnrate.core.errors import UserError
from attnrate.laws.vit import spread
from attnrate.sources import dinov2
from attnrate.spectra.measure import measure
from attnrate.vit import model
from attnrate.vit.view import View, load

SHOWN = 32  # values of Figure 2


def obtain(own):
    """The weights, and what to know about them."""
    about = {"name": own.name, "floor": own.floor, "sizes": dinov2.SIZES[own.name]}
    if own.name == "toy":
        return dinov2.toy(), about | {"what": "random weights, for tests"}
    weights = dinov2.obtain(own.folder and Path(own.folder))
    found = dinov2.shown(dinov2.outputs(weights))
    if np.abs(found - dinov2.GRAPH).max() > dinov2.AGREE:
        raise UserError(f"{dinov2.PACKAGE}: its weights give {found} where its own graph gives {dinov2.GRAPH}")
    source = {"package": dinov2.PACKAGE, "file": dinov2.ONNX, "sha256": dinov2.SHA256, "outputs": found.round(3)}
    return weights, about | source | {"what": dinov2.WHAT, "changed": dinov2.CHANGED}


def quantiles(violins, layer):
    """A row for each of 40 quantiles over all images, a column for each of the first values."""
    values, at = np.concatenate([v[layer] for v in violins])[:, :SHOWN], (np.arange(40) + 0.5) / 40
    table = pd.DataFrame(np.quantile(values, at, axis=0), columns=range(1, values.shape[1] + 1))
    return pd.DataFrame({"layer": layer, "quantile": at}).join(table)


def main(p, to):
    cores.set_threads(p.threads)
    own = p.vit.pretrained
    weights, about = obtain(own)
    tensors = {name: torch.from_numpy(array) for name, array in weights.items()}
    files.write_weights(to.data / "weights.safetensors", tensors)
    files.write_json(to.results / "source.json", about)

    sizes = about["sizes"] | {"image_size": own.image_size}
    mh = sizes["width"] // sizes["heads"]
    trained = model.make("qk", mh, 0, own.name, to.data / "weights.safetensors", **sizes)
    images = torch.from_numpy(load(stage.data("vit_images") / "images.npz")["test_x"][: own.images])
    parts, view = images.tensor_split(own.groups), View(own.image_size, own.name)

    def seen(group):
        part, heads, values = parts[group], [], []
        few = part[: own.beside]
        untrained = model.build("qk", mh, seed=group, **sizes)
        cases = (
            ("trained", True, trained, part),
            ("trained", False, trained, few),
            ("untrained", True, untrained, few),
        )
        for state, centred, vit, chosen in cases:
            batches = (view(batch) for batch in chosen.split(64))
            taken = measure(vit, batches, "tokens", centred)
            keys = {"state": state, "centred": centred, "group": group}
            found = taken.ranks.merge(spread(taken.spectra, own.floor, ["layer", "head"]).reset_index())
            heads.append(pd.DataFrame(keys, index=found.index).join(found))
            values.append(pd.DataFrame(keys, index=taken.spectra.index).join(taken.spectra))
            if centred and state == "trained":
                violins = taken.violins
        return heads, values, violins

    heads, values, violins = zip(*cores.side_by_side(seen, range(own.groups)), strict=True)
    files.write_csv(to.results / "heads.csv", pd.concat(chain(*heads)))
    by = ["state", "centred", "layer", "head", "k"]
    spectra = pd.concat(chain(*values)).groupby(by, as_index=False)[["mean", "sd"]].mean()
    files.write_csv(to.results / "values.csv", spectra[spectra.layer == spectra.layer.max()])
    files.write_csv(to.results / "quantiles.csv", pd.concat(quantiles(violins, name) for name in ("first", "last")))


if __name__ == "__main__":
    stage.run(main)
