"""A ViT that others pretrained: its weights under timm's names, and Figure 2's singular values on it.

heads.csv has ranks and spread of every head within each of several disjoint groups of test images, `trained`, and
beside it `untrained`, another model for each group; values.csv the singular values of the first and of the last layer.
`centred` is without what is constant in a row, as the softmax sees it. Most of it is taken on fewer images of a group.
"""

import launcher  # noqa: F401

from pathlib import Path

import numpy as np
import pandas as pd
import torch

from attnrate.core import files, stage
from attnrate.core.errors import UserError
from attnrate.laws.vit import spread
from attnrate.sources import dinov2
from attnrate.spectra.measure import measure
from attnrate.vit import model
from attnrate.vit.view import View, load


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


def main(p, to):
    stage.set_threads(p.threads)
    own = p.vit.pretrained
    weights, about = obtain(own)
    tensors = {name: torch.from_numpy(array) for name, array in weights.items()}
    files.write_weights(to.data / "weights.safetensors", tensors)
    files.write_json(to.results / "source.json", about)

    sizes = about["sizes"] | {"image_size": own.image_size}
    mh = sizes["width"] // sizes["heads"]
    trained = model.make("qk", mh, 0, own.name, to.data / "weights.safetensors", **sizes)
    images = torch.from_numpy(load(stage.data("vit_images") / "images.npz")["test_x"][: own.images])
    heads, values, violins, view = [], [], [], View(own.image_size, own.name)
    for group, part in enumerate(images.tensor_split(own.groups)):
        few = part[: own.beside]
        untrained = model.build("qk", mh, seed=group, **sizes)
        cases = (
            ("trained", True, trained, part),
            ("trained", False, trained, few),
            ("untrained", True, untrained, few),
        )
        for state, centred, vit, chosen in cases:
            batches = (view(batch) for batch in chosen.split(64))
            seen = measure(vit, batches, p.vit.spectra.normalisation, centred)
            keys = {"state": state, "centred": centred, "group": group}
            found = seen.ranks.merge(spread(seen.spectra, own.floor, ["layer", "head"]).reset_index())
            heads.append(pd.DataFrame(keys, index=found.index).join(found))
            ends = seen.spectra[seen.spectra.layer.isin([1, len(seen.layers)])]
            values.append(pd.DataFrame(keys, index=ends.index).join(ends))
            if centred and state == "trained":
                violins.append(seen.violins)
    files.write_csv(to.results / "heads.csv", pd.concat(heads))
    files.write_csv(to.results / "values.csv", pd.concat(values))
    joined = {name: np.concatenate([v[name] for v in violins]) for name in violins[0]}
    files.write_npz(to.data / "violins.npz", joined)


if __name__ == "__main__":
    stage.run(main)
