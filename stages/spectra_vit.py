"""Singular values of a ViT's attention matrices before the softmax, over test images, all layers and heads."""

import bootstrap  # noqa: F401

import numpy as np
import pandas as pd
import torch

from attnrate.analysis import vit_spectra
from attnrate.core import files, stage
from attnrate.data.view import View, load
from attnrate.models import vit
from attnrate.schemas.vit import Vit

PARAMS = (
    "profile", "vit.data", "threads", "vit.image_size", "vit.patch", "vit.width", "vit.depth", "vit.heads", "vit.mlp_ratio", "vit.pool", "vit.position_std", "vit.spectra_images",
    "vit.normalisation",
)  # fmt: skip


def main(cfg, args):
    p, mh = cfg.vit, int(args.mh)
    model = vit.make(p, args.reading, mh, seed=0).eval()
    weights = min(args.weights.glob("*.safetensors"), key=lambda path: int(path.stem.rpartition("seed")[2]))
    with files.reading(weights):  # the first seed's
        model.load_state_dict(files.read_weights(weights))
    model.to("cuda" if torch.cuda.is_available() else "cpu")
    images = torch.from_numpy(load(args.data)["test_x"][: p.spectra_images])
    view = View(p.image_size, args.start)
    values, ranks, first_head = vit_spectra.measure(model, images, view, p.normalisation)
    keys = {"reading": args.reading, "mh": mh}
    files.write_csv(args.values, pd.DataFrame(keys, index=values.index).join(values))
    files.write_csv(args.ranks, pd.DataFrame(keys, index=ranks.index).join(ranks))
    with files.atomic(args.images) as draft, draft.open("wb") as f:
        np.savez(f, **first_head)


if __name__ == "__main__":
    stage.run(
        main, PARAMS, {"vit": Vit}, inputs=["data", "weights"], outs=["values", "ranks", "images", "record"],
        flags={"reading": ["qk", "head", "width"], "mh": None, "start": None},
    )  # fmt: skip
