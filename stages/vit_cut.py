"""Heads cut to m_h after training, all layers at once: loss and accuracy of models that were trained with full heads.

curves.csv has the main ViT, the translation model and the pretrained ViT, whose classifier is a softmax regression on
its features of training images. Cut by `data`, which smaller weights could do, and by `scores`, each input's own best.
"""

import launcher  # noqa: F401

import pandas as pd
import torch
from torch import nn

from attnrate import cores
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


def main_vit(seed, own, sizes, images, number, device):
    path = parts.weights(stage.data("vit_main"), own.parts, f"main_seed{seed}")
    found = model.load(path, "qk", own.mh, **sizes).to(device)
    return own.mh, found, pictures(images, View(sizes.image_size, own.start), number, device)


def pretrained_vit(own, images, cut, device):
    sizes = files.read_json(stage.results("vit_pretrained") / "source.json")["sizes"]
    mh, view = sizes["width"] // sizes["heads"], View(own.image_size, own.name)
    path = stage.data("vit_pretrained") / "weights.safetensors"
    found = model.make("qk", mh, 0, own.name, path, **sizes | {"image_size": own.image_size}).to(device)
    found.head = nn.Identity()
    x, y = (torch.from_numpy(images[name][: cut.probe]) for name in ("train_x", "train_y"))
    seen = probe.features(found, (view(part.to(device)) for part in x.split(BATCH)))
    found.head = probe.probe(seen, y.long(), 10).to(device)
    return mh, found, pictures(images, view, cut.inputs, device)


def translator(seed, train, sizes, number, device):
    """Each sentence alone, since sentences of one length are few."""
    given = tokens.load(stage.data("translation_tokens") / "tokens.npz")
    pairs = []
    for i in range(min(number, len(given["test_en"]))):
        source, target = seq2seq.pad([given["test_en"][i]]), seq2seq.pad([given["test_de"][i]])
        start = torch.full((1, 1), tokens.PAD)
        named = {"input_ids": source, "decoder_input_ids": torch.cat([start, target[:, :-1]], 1)}
        pairs.append(({k: v.to(device) for k, v in named.items()}, target.to(device)))
    path = parts.weights(stage.data("translation_main"), train.parts, f"original_seed{seed}")
    found = seq2seq.load(path, **sizes).to(device)
    found.config.use_cache = False
    return sizes["width"] // sizes["heads"], found, pairs


def main(p, to):
    cores.set_threads(p.threads)
    device = devices.choose(p.device)
    images, own = load(stage.data("vit_images") / "images.npz"), p.vit.cut
    words = {"vocabulary": p.translation.tokens.vocabulary, **p.translation.model}

    def cut(case):
        name, seed = case
        full, found, batches = {
            "main": lambda: main_vit(seed, p.vit.main, p.vit.model, images, own.inputs, device),
            "translation": lambda: translator(seed, p.translation.train, words, own.inputs, device),
            "pretrained": lambda: pretrained_vit(p.vit.pretrained, images, own, device),
        }[name]()
        table = curves(found, batches, sorted({*(m for m in own.sizes if m < full), full}))
        return pd.DataFrame({"model": name, "seed": seed}, index=table.index).join(table)

    cases = [("translation", seed) for seed in p.translation.train.seeds]
    cases += [("main", seed) for seed in own.seeds]
    tables = [cut(("pretrained", 0)), *cores.for_device(device)(cut, cases)]  # the longest, with every thread
    files.write_csv(to.results / "curves.csv", pd.concat(tables).drop(columns="layers"))


if __name__ == "__main__":
    stage.run(main)
