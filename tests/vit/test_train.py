import json
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from accelerate import Accelerator
from safetensors import safe_open
from torch import nn

from attnrate.sources import cifar10
from attnrate.vit.permute import permute_patches
from attnrate.vit.view import View
from attnrate.vit import train as vit
from tests.conftest import NOTES, ROOT


def test_a_view_is_standardised_resized_and_permuted():
    images = torch.from_numpy(cifar10.toy()["train_x"][:4])
    plain = View(32)(images)
    assert plain.shape == (4, 3, 32, 32) and plain.dtype == torch.float32 and plain.abs().max() < 3
    assert View(32, "vit_base_patch16_224")(images).abs().max() <= 1
    assert View(48)(images).shape == (4, 3, 48, 48)
    p = torch.roll(torch.arange(64), -10)
    assert torch.equal(View(32, p=p)(images), permute_patches(plain.contiguous(), p))


def test_batches_are_mirrored_and_cover_every_image_once():
    arrays = cifar10.toy()
    images = vit.Images(arrays["train_x"], arrays["train_y"], 64)
    order = images.order(np.random.default_rng((0, 0)))
    assert sorted(np.concatenate(order)) == list(range(640))
    a, b = (images.batch(order[0], torch.Generator().manual_seed(s)) for s in (0, 0))
    assert torch.equal(a["x"], b["x"]) and torch.equal(a["y"], images.y[order[0]])
    plain = images.x[order[0]]
    same = (a["x"] == plain).flatten(1).all(1)
    mirrored = (a["x"] == plain.flip(2)).flatten(1).all(1)
    assert (same | mirrored).all() and 10 < same.sum() < 54


PARAMS = SimpleNamespace(
    epochs=3,
    tune_epochs=1,
    batch=64,
    max_steps=None,
    lr=0.1,
    tune_lr=0.2,
    optimiser="adamw",
    tune_optimiser="sgd",
    weight_decay=0.3,
    tune_weight_decay=0.4,
    schedule="cosine",
    warmup=0.1,
    clip=1.0,
    accumulate=1,
    checkpoint=10,
)


def test_budgets():
    full, tune, none = (vit.recipe(PARAMS, 640, budget) for budget in ("full", "tune", "none"))
    assert (full.steps, full.lr, full.optimiser, full.weight_decay, full.warmup) == (30, 0.1, "adamw", 0.3, 3)
    assert (tune.steps, tune.lr, tune.optimiser, tune.weight_decay) == (10, 0.2, "sgd", 0.4)
    assert none.steps == 0
    PARAMS.max_steps = 2
    assert vit.recipe(PARAMS, 640, "full").steps == 2
    PARAMS.max_steps = None


def test_scores_are_those_of_all_images_of_a_part():
    class Colour(nn.Module):
        def forward(self, x):
            return torch.cat([x.mean((2, 3)), torch.zeros(len(x), 7)], 1)

    arrays = vit.subset(cifar10.toy(), 500, 300, 64)
    assert len(arrays["train_x"]) == 500 and len(arrays["measure_x"]) == 300 and len(arrays["test_x"]) == 64
    assert (arrays["measure_x"] == arrays["train_x"][:300]).all()
    view, model = View(32), Colour()
    found = vit.scores(model, view, arrays, Accelerator())
    for part, score in (("test", "test_loss"), ("measure", "train_loss")):
        logits = model(view(torch.from_numpy(arrays[f"{part}_x"])))
        y = torch.from_numpy(arrays[f"{part}_y"]).long()
        assert found[score] == pytest.approx(nn.functional.cross_entropy(logits, y).item(), rel=1e-5)
        if part == "test":
            assert found["test_acc"] == pytest.approx((logits.argmax(1) == y).float().mean().item())


def launch(folder, out):
    command = [
        sys.executable,
        ROOT / "stages" / "train_vit.py",
        "--params",
        "params.yaml",
        "--reading",
        "qk",
        "--mh",
        "3",
        "--data",
        "toy.npz",
        "--out",
        f"{out}.csv",
        "--history",
        f"{out}_history.csv",
        "--weights",
        out,
        "--record",
        f"{out}.json",
    ]
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)


def saved_step(folder):
    for path in (folder / ".scratch" / "checkpoints").glob("*/*.safetensors"):
        with safe_open(path, "pt") as f:
            return json.loads(f.metadata()["state"])["step"]
    return 0


@pytest.mark.slow
def test_train_vit_killed_five_times_gives_the_same_weights(tmp_path):
    params = yaml.safe_load((ROOT / "params.yaml").read_text())
    params["threads"] = 1
    params["vit"] |= {
        "data": "toy",
        "width": 32,
        "depth": 2,
        "heads": 2,
        "patch": 8,
        "train_images": 640,
        "test_images": 64,
        "epochs": 60,
        "batch": 32,
        "checkpoint": 20,
        "seeds": [0],
    }
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params))
    cifar10.save(tmp_path / "toy.npz", cifar10.toy())
    assert launch(tmp_path, "whole").wait(300) == 0
    killed = []
    for _ in range(5):
        process, last = launch(tmp_path, "broken"), killed[-1] if killed else 0
        end = time.monotonic() + 300
        while saved_step(tmp_path) <= last:
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        killed.append(saved_step(tmp_path))
        assert not (tmp_path / "broken").exists()
    NOTES.append(f"train_vit: killed after the checkpoints of steps {', '.join(map(str, killed))} of 1200")
    assert killed == sorted(set(killed)) and killed[-1] < 1200
    assert launch(tmp_path, "broken").wait(300) == 0
    for name in ("{}.csv", "{}_history.csv", "{}/original_seed0.safetensors"):
        assert (tmp_path / name.format("whole")).read_bytes() == (tmp_path / name.format("broken")).read_bytes()
    assert list((tmp_path / ".scratch" / "checkpoints").iterdir()) == []
    assert pd.read_csv(tmp_path / "whole.csv").columns.tolist() == [
        "reading",
        "mh",
        "seed",
        "variant",
        "train_loss",
        "test_loss",
        "test_acc",
    ]
