"""Training a ViT: what a batch holds, budgets, scores, what a stage writes, and runs that get killed."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from accelerate import Accelerator
from safetensors import safe_open
from torch import nn
from torchvision.transforms import v2

from attnrate.core import files
from attnrate.core.params import Group, read
from attnrate.core.stage import Outs
from attnrate.large import checkpoint
from attnrate.sources import cifar10
from attnrate.vit import model
from attnrate.vit import train as vit
from attnrate.vit.permute import permute_patches
from attnrate.vit.view import View
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
    images = vit.Images(arrays["train_x"], arrays["train_y"], 64, "mirror")
    order = images.order(np.random.default_rng((0, 0)))
    assert sorted(np.concatenate(order)) == list(range(640)) and images.size(order[0]) == 64
    draws = torch.rand(64)
    found, plain = images.batch(order[0], draws), images.x[order[0]]
    assert torch.equal(found["y"], images.y[order[0]])
    for x, before, draw in zip(found["x"], plain, draws, strict=True):
        assert torch.equal(x, before.flip(1) if draw < 0.5 else before)


def test_crops_are_torchvisions_and_belong_to_their_draw():
    """Whatever batch an image is in, and without touching the random numbers of dropout."""
    arrays, draws, order = cifar10.toy(), torch.rand(48), np.arange(48)
    images = vit.Images(arrays["train_x"], arrays["train_y"], 48, "crop")
    before = torch.get_rng_state()
    whole, half = images.batch(order, draws), images.batch(order[24:], draws[24:])
    assert torch.equal(torch.get_rng_state(), before) and torch.equal(whole["boxes"][24:], half["boxes"])
    area = (whole["boxes"][:, 2] * whole["boxes"][:, 3]) / 1024
    assert 0.04 < area.min() < 0.2 and 0.7 < area.max() <= 1 and len(whole["boxes"].unique(dim=0)) > 40
    for size in (32, 48):
        seen, plain = View(size)(whole["x"], whole["boxes"]), View(32)(whole["x"])
        for image, x, box in zip(seen, plain, whole["boxes"].tolist(), strict=True):
            expected = v2.functional.resized_crop(x, *box, [size, size], antialias=True)
            assert torch.allclose(image, expected, atol=1e-4)


TRAIN = Group(
    {"epochs": 3, "batch": 64, "max_steps": None, "clip": 1.0, "schedule": "cosine", "warmup": 0.1}
    | {"accumulate": 1, "checkpoint": 10, "smoothing": 0.0}
)
RECIPE = Group(lr=0.1, optimiser="adamw", weight_decay=0.3, augment="mirror")
TUNE = Group(epochs=1, lr=0.2, optimiser="sgd", weight_decay=0.4)


def test_budgets():
    train = Group(TRAIN | RECIPE)
    full, tune, none = (vit.plan(train, TUNE, 640, budget) for budget in ("full", "tune", "none"))
    assert (full.steps, full.lr, full.optimiser, full.weight_decay, full.warmup) == (30, 0.1, "adamw", 0.3, 3)
    assert (tune.steps, tune.lr, tune.optimiser, tune.weight_decay, tune.warmup) == (10, 0.2, "sgd", 0.4, 1)
    assert (tune.schedule, tune.clip) == (full.schedule, full.clip) == ("cosine", 1.0) and none.steps == 0
    assert vit.plan(Group(train | {"max_steps": 2}), TUNE, 640, "full").steps == 2


def test_scores_are_those_of_all_images_of_a_part():
    class Colour(nn.Module):
        def forward(self, x):
            return torch.cat([x.mean((2, 3)), torch.zeros(len(x), 7)], 1)

    arrays = vit.subset(cifar10.toy(), Group(train=500, measure=300, test=64))
    assert len(arrays["train_x"]) == 500 and len(arrays["measure_x"]) == 300 and len(arrays["test_x"]) == 64
    assert (arrays["measure_x"] == arrays["train_x"][:300]).all()
    view, colour = View(32), Colour()
    found = vit.scores(colour, view, arrays, Accelerator())
    for part, score in (("test", "test_loss"), ("measure", "train_loss")):
        logits = colour(view(torch.from_numpy(arrays[f"{part}_x"])))
        y = torch.from_numpy(arrays[f"{part}_y"]).long()
        assert found[score] == pytest.approx(nn.functional.cross_entropy(logits, y).item(), rel=1e-5)
        if part == "test":
            assert found["test_acc"] == pytest.approx((logits.argmax(1) == y).float().mean().item())


MODEL = Group(image_size=32, patch=8, width=16, depth=1, heads=2, mlp_ratio=1.0)
IMAGES = Group(train=256, measure=64, test=64)


def train_all(runs, **changes):
    """The runs of a stage `demo` on small images; what it wrote."""
    files.write_npz("images.npz", cifar10.toy())
    groups = {"model": MODEL, "images": IMAGES, "train": TRAIN, "recipe": RECIPE, "tune": TUNE} | changes
    with Outs() as to:
        to.name = "demo"
        vit.train_all(runs, to, Path("images.npz"), [], **groups)
        assert Path("data/demo").is_dir() and not list(checkpoint.FOLDER.glob("*")), "in place"
    return Path("reports/results/demo"), Path("data/demo")


def run(seed=0, variant="original", mh=3, **options):
    return vit.Run("qk", mh, seed, variant, lambda: model.make("qk", mh, seed, **MODEL), **options)


def test_every_run_gets_a_row_a_curve_and_weights():
    order = np.roll(np.arange(16), -10)
    results, weights = train_all([run(), run(1), run(0, "unadapted", p=order, budget="none")])
    table, curves = (pd.read_csv(results / name) for name in ("scores.csv", "history.csv"))
    keys = ["reading", "mh", "seed", "variant"]
    assert table.columns.tolist() == [*keys, "train_loss", "test_loss", "test_acc", "running_loss"]
    assert table[["variant", "seed"]].values.tolist() == [["original", 0], ["original", 1], ["unadapted", 0]]
    assert curves.columns.tolist() == [*keys, "step", "lr", "loss"] and set(curves.variant) == {"original"}
    assert curves[curves.seed == 1].step.tolist() == list(range(1, 13))
    assert table.running_loss[1] == curves[curves.seed == 1].loss.iloc[-1] and np.isnan(table.running_loss[2])
    names = {p.stem for p in weights.iterdir()}
    assert names == {"original_seed0", "original_seed1", "unadapted_seed0"}
    untouched = model.load(weights / "unadapted_seed0.safetensors", "qk", 3, **MODEL).state_dict()
    start = model.make("qk", 3, 0, **MODEL).state_dict()
    assert all(torch.equal(untouched[k], start[k]) for k in start)


def test_every_run_of_a_stage_has_a_name_of_its_own():
    """vit_beside alone has several head sizes."""
    runs = [run(seed, "beside", mh) for seed in (0, 1) for mh in (1, 3)]
    _, weights = train_all(runs, train=Group(TRAIN | {"max_steps": 1}))
    assert {p.stem for p in weights.iterdir()} == {f"beside_mh{mh}_seed{seed}" for mh in (1, 3) for seed in (0, 1)}


def test_the_authors_recipe_trains_on_crops_and_keeps_both_losses():
    """SGD with momentum 0.9; what it sees differs from the images that the clean loss is of."""
    recipe = read(ROOT / "params.yaml").vit.recipes.authors
    assert (recipe.optimiser, recipe.lr, recipe.weight_decay, recipe.augment) == ("sgd", 0.03, 0.0, "crop")
    plan = vit.plan(Group(TRAIN | recipe), None, 256, "full")
    assert (plan.optimiser, plan.momentum, plan.lr) == ("sgd", 0.9, 0.03)
    results, _ = train_all([run()], recipe=recipe)
    score = pd.read_csv(results / "scores.csv").iloc[0]
    assert 1 < score.running_loss < 3 and 1 < score.train_loss < 3 and score.running_loss != score.train_loss


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_a_recipe_joins_the_training_and_is_what_trains(optimiser):
    """AdamW's first step moves every number by the rate at most, where none decays; Muon's, its matrices by more."""
    recipe = Group(lr=0.01, optimiser=optimiser, weight_decay=0.0, augment="mirror")
    first = Group(TRAIN | {"max_steps": 1, "warmup": 0})
    results, weights = train_all([run()], train=first, recipe=recipe)
    assert pd.read_csv(results / "history.csv").lr.tolist() == [0.01]
    start, end = model.make("qk", 3, 0, **MODEL), model.load(weights / "original_seed0.safetensors", "qk", 3, **MODEL)
    moved = {n: (p - end.get_parameter(n)).abs().max().item() / 0.01 for n, p in start.named_parameters()}
    assert moved["head.weight"] == pytest.approx(1, rel=1e-2)
    assert (moved["blocks.0.attn.qkv.weight"] == pytest.approx(1, rel=1e-2)) == (optimiser == "adamw")


CONDITIONS = [
    ({"p": np.arange(16)}, {"p": np.arange(16)[::-1].copy()}),
    ({"start": "scratch"}, {"start": "vit_tiny_patch16_224"}),
    ({"budget": "full"}, {"budget": "tune"}),
    ({"recipe": RECIPE}, {"recipe": Group(RECIPE | {"optimiser": "muon"})}),
]


@pytest.mark.parametrize(("one", "other"), CONDITIONS)
def test_no_run_goes_on_under_other_conditions(one, other, monkeypatch):
    """A checkpoint knows the order of the patches, what the weights came from, the budget and the recipe."""
    keys = []
    monkeypatch.setattr(checkpoint, "key", lambda *given: keys.append(json.dumps(given, default=str)) or "0" * 16)
    for options in (one, one, other):
        recipe = options.get("recipe", RECIPE)
        own = {k: v for k, v in options.items() if k != "recipe"}
        train_all([run(**own)], train=Group(TRAIN | {"max_steps": 1}), recipe=recipe)
    assert keys[0] == keys[1] != keys[2]


def prepare(folder, epochs):
    """Toy images, and parameters for a small model on them."""
    p = read(ROOT / "params.yaml")
    p.update(threads=1)
    p.vit.model.update(width=32, depth=2, heads=2, patch=8)
    p.vit.images.update(train=640, test=64)
    p.vit.train.update(epochs=epochs, batch=32, checkpoint=20)
    p.vit.sweep.update(seeds=[0])
    (folder / "data" / "vit_images").mkdir(parents=True)
    np.savez(folder / "data" / "vit_images" / "images.npz", **cifar10.toy())
    (folder / "params.yaml").write_text(json.dumps(p))  # JSON is YAML


def launch(folder):
    command = [sys.executable, ROOT / "stages" / "vit_sweep.py", "qk-3"]
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)


def saved_step(folder):
    for path in (folder / ".scratch" / "checkpoints").glob("*/*.safetensors"):
        with safe_open(path, "pt") as f:
            return json.loads(f.metadata()["state"])["step"]
    return 0


@pytest.mark.slow
def test_a_sweep_killed_twice_gives_the_same_weights(tmp_path):
    """The second time as it goes on from a checkpoint."""
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        prepare(folder, epochs=30)
    assert launch(whole).wait(300) == 0
    killed = []
    for _ in range(2):
        process, last = launch(broken), killed[-1] if killed else 0
        end = time.monotonic() + 300
        while saved_step(broken) <= last:
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        killed.append(saved_step(broken))
        assert not (broken / "reports").exists() and not (broken / "data" / "vit_sweep").exists()
    NOTES.append(f"vit_sweep: killed after the checkpoints of steps {', '.join(map(str, killed))} of 600")
    assert killed == sorted(set(killed)) and killed[-1] < 600
    assert launch(broken).wait(300) == 0
    results = Path("reports/results/vit_sweep/qk-3")
    for path in (
        results / "scores.csv",
        results / "history.csv",
        Path("data/vit_sweep/qk-3/original_seed0.safetensors"),
    ):
        assert (whole / path).read_bytes() == (broken / path).read_bytes()
    assert list((broken / ".scratch" / "checkpoints").iterdir()) == []
