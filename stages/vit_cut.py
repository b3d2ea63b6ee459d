"""Heads cut to m_h after training, all layers at once: loss and accuracy of models that were trained with full heads.

curves.csv has the main ViT, the translation model and the pretrained ViT, whose classifier is a softmax regression on
its features of training images. Cut by `data`, which smaller weights could do, and by `scores`, each input's own best.
"""

import launcher  # noqa: F401

import pandas as pd
import torch
from torch import nn

from attnrate.core import files, stage
from attnrate.cut import probe
from attnrate.cut.study import curves
from attnrate.large import device as devices
from attnrate.large import parts
from attnrate.translation import model as seq2seq
from attnrate.translation import tokens
from attnrate.vit import model
from attnrate.vit.view import View, load

BATCH = 32


def pictures(images, view, number, device):
    """The first test images with their classes."""
    x, y = (torch.from_numpy(images[name][:number]) for name in ("test_x", "test_y"))
    pairs = zip(x.split(BATCH), y.split(BATCH), strict=True)
    return [(view(part.to(device)), label.long().to(device)) for part, label in pairs]


def main_vits(p, images, device):
    view = View(p.vit.model.image_size, p.vit.main.start)
    for seed in p.vit.main.seeds:
        path = parts.weights(stage.data("vit_main"), p.vit.main.parts, f"main_seed{seed}")
        found = model.load(path, "qk", p.vit.main.mh, **p.vit.model).to(device)
        yield "main", seed, p.vit.main.mh, found, pictures(images, view, p.vit.cut.inputs, device)


def pretrained_vit(p, images, device):
    own, sizes = p.vit.pretrained, files.read_json(stage.results("vit_pretrained") / "source.json")["sizes"]
    mh, view = sizes["width"] // sizes["heads"], View(own.image_size, own.name)
    path = stage.data("vit_pretrained") / "weights.safetensors"
    found = model.make("qk", mh, 0, own.name, path, **sizes | {"image_size": own.image_size}).to(device)
    found.head = nn.Identity()
    x, y = (torch.from_numpy(images[name][: p.vit.cut.probe]) for name in ("train_x", "train_y"))
    seen = probe.features(found, (view(part.to(device)) for part in x.split(BATCH)))
    found.head = probe.probe(seen, y.long(), 10).to(device)
    yield "pretrained", 0, mh, found, pictures(images, view, p.vit.cut.inputs, device)


def translators(p, device):
    """Each sentence alone, since sentences of one length are few."""
    given = tokens.load(stage.data("translation_tokens") / "tokens.npz")
    pairs = []
    for i in range(min(p.vit.cut.inputs, len(given["test_en"]))):
        source, target = seq2seq.pad([given["test_en"][i]]), seq2seq.pad([given["test_de"][i]])
        start = torch.full((1, 1), tokens.PAD)
        named = {"input_ids": source, "decoder_input_ids": torch.cat([start, target[:, :-1]], 1)}
        pairs.append(({k: v.to(device) for k, v in named.items()}, target.to(device)))
    sizes = {"vocabulary": p.translation.tokens.vocabulary, **p.translation.model}
    for seed in p.translation.train.seeds:
        path = parts.weights(stage.data("translation_main"), p.translation.train.parts, f"original_seed{seed}")
        found = seq2seq.load(path, **sizes).to(device)
        found.config.use_cache = False
        yield "translation", seed, sizes["width"] // sizes["heads"], found, pairs


def main(p, to):
    stage.set_threads(p.threads)
    device = devices.choose(p.device)
    images, tables = load(stage.data("vit_images") / "images.npz"), []
    for cases in (main_vits(p, images, device), translators(p, device), pretrained_vit(p, images, device)):
        for name, seed, full, found, batches in cases:
            table = curves(found, batches, sorted({*(m for m in p.vit.cut.sizes if m < full), full}))
            tables.append(pd.DataFrame({"model": name, "seed": seed}, index=table.index).join(table))
    files.write_csv(to.results / "curves.csv", pd.concat(tables).drop(columns="layers"))


if __name__ == "__main__":
    stage.run(main)
