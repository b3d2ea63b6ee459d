"""The loop of the large models: killed runs, resumed runs, checkpoints."""

import gc
import json
import os
import signal
import subprocess
import sys
import time
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors import safe_open
from torch import nn

from attnrate.core import files
from attnrate.core.errors import UserError
from attnrate.core.stage import Outs
from attnrate.large import checkpoint
from attnrate.large import loop as large

SCRIPT = Path(__file__).with_name("killed.py")
RESULTS = ("weights.safetensors", "history.csv")


def start(folder, pause, optimiser):
    environment = os.environ | {"PYTHONPATH": str(SCRIPT.parents[2] / "src")}
    return subprocess.Popen([sys.executable, str(SCRIPT), str(folder), str(pause), optimiser], env=environment)


def saved_step(path):
    try:
        with safe_open(path, "pt") as f:
            return json.loads(f.metadata()["state"])["step"]
    except FileNotFoundError:
        return 0


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_a_killed_run_ends_in_the_same_bytes(tmp_path, optimiser):
    """Stages that are killed twice are in the tests of vit and translation."""
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    whole.mkdir(), broken.mkdir()
    assert start(whole, 0, optimiser).wait(120) == 0
    process = start(broken, 0.02, optimiser)
    end = time.monotonic() + 120
    while not saved_step(broken / "run.safetensors"):
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert 0 < saved_step(broken / "run.safetensors") < 120 and not (broken / "weights.safetensors").exists()
    assert start(broken, 0, optimiser).wait(120) == 0
    for name in RESULTS:
        assert (whole / name).read_bytes() == (broken / name).read_bytes()


class Line:
    unit, size = "points", staticmethod(len)

    def order(self, rng):
        return list(rng.permutation(32).reshape(-1, 8))

    def batch(self, index, draws):
        x = torch.tensor(index, dtype=torch.float32)[:, None] / 32
        return {"x": x, "y": torch.tensor(index > 15).long()}


def fit(tmp_path, accelerator=None, data=None, **recipe):
    torch.manual_seed(0)
    model, path = nn.Linear(1, 2), tmp_path / "c.safetensors"
    plan = large.Recipe(**{"steps": 40, "lr": 0.1, "checkpoint": 10} | recipe)
    loss, options = large.classification_loss(), {"seed": 0, "checkpoint": path, "accelerator": accelerator}
    return model, large.train(model, data or Line(), loss, plan, **options)


def test_a_run_that_has_ended_leaves_nothing_in_memory(tmp_path):
    """Nor its optimiser: a stage trains many models with one accelerator."""
    accelerator = large.make_accelerator()
    model, _ = fit(tmp_path, accelerator)
    gone = weakref.ref(model.weight)
    del model
    gc.collect()
    assert gone() is None


def test_accumulation_does_not_change_the_result(tmp_path):
    (tmp_path / "b").mkdir()
    one, two = fit(tmp_path)[0], fit(tmp_path / "b", accumulate=4)[0]
    assert torch.allclose(one.weight, two.weight, atol=1e-5)


OPTIMISERS = ("adamw", "sgd", "muon")


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_learns_and_resumes_from_the_last_step(tmp_path, optimiser):
    model, history = fit(tmp_path, optimiser=optimiser, schedule="one-cycle", warmup=5)
    assert history.loss.iloc[-1] < history.loss.iloc[0] and list(history.columns) == ["step", "lr", "loss"]
    again, same = fit(tmp_path, optimiser=optimiser, schedule="one-cycle", warmup=5)  # nothing left to do
    assert torch.equal(model.weight, again.weight) and history.equals(same)


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_a_checkpoint_brings_back_model_optimiser_and_state(tmp_path, optimiser):
    def fresh(seed):
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
        return model, large.make_optimiser(model, large.Recipe(steps=9, lr=0.1, optimiser=optimiser, weight_decay=0.1))

    def move(model, by, seed):
        g = torch.Generator().manual_seed(seed)
        for p in model.parameters():
            p.grad = torch.randn(p.shape, generator=g)
        by.step()

    (one, first), (two, second) = fresh(0), fresh(1)
    for seed in range(3):
        move(one, first, seed)
    random = checkpoint.random_states(large.make_accelerator())
    checkpoint.save(tmp_path / "c.safetensors", one, first, random, {"step": 3})
    assert checkpoint.restore(tmp_path / "c.safetensors", two, second) == {"step": 3}
    for seed in range(3, 5):
        move(one, first, seed), move(two, second, seed)
        assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


def test_loss_that_is_not_finite_names_step_rate_and_checkpoint(tmp_path):
    fit(tmp_path, steps=40, checkpoint=20)

    class Broken(Line):
        def batch(self, index, draws):
            return {k: v * float("nan") if k == "x" else v for k, v in super().batch(index, draws).items()}

    with pytest.raises(UserError, match=r"step 41 of 80 \(learning rate 0\.\d+; the last good checkpoint, .* step 40"):
        fit(tmp_path, data=Broken(), steps=80, checkpoint=20)


def test_unreadable_checkpoint_starts_anew(tmp_path, capsys):
    path = tmp_path / "c.safetensors"
    path.write_bytes(b"\xff" * 100)
    assert fit(tmp_path)[1].step.iloc[-1] == 40
    assert "unreadable checkpoint" in capsys.readouterr().err


def test_batch_larger_than_the_data_is_an_error(tmp_path):
    class Empty(Line):
        def order(self, rng):
            return []

    with pytest.raises(UserError, match="batch"):
        fit(tmp_path, data=Empty(), steps=1)


def test_checkpoints_belong_to_params_and_inputs_and_go_on_success(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "FOLDER", tmp_path / "checkpoints")
    data = tmp_path / "data"
    data.write_text("a")
    first = checkpoint.key({"lr": 1}, [data])
    assert first == checkpoint.key({"lr": 1}, [data]) != checkpoint.key({"lr": 2}, [data])
    data.write_text("b")
    assert checkpoint.key({"lr": 1}, [data]) != first
    with pytest.raises(RuntimeError), checkpoint.kept("run-1", {}, [data]) as folder:
        (folder / "seed0.safetensors").write_text("kept when the run fails")
        raise RuntimeError
    assert (folder / "seed0.safetensors").exists()
    with checkpoint.kept("run-1", {}, [data]) as folder, checkpoint.kept("run-10", {}, [data]) as other:
        assert (folder / "seed0.safetensors").exists() and other != folder
    assert not folder.exists() and not other.exists()


def test_an_interrupted_run_says_whether_it_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "FOLDER", tmp_path / "checkpoints")
    with pytest.raises(KeyboardInterrupt, match=r"^$"), checkpoint.kept("stage/item", {}, []):
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt, match="goes on from the last checkpoint"):
        with checkpoint.kept("stage/item", {}, []) as folder:
            (folder / "seed0.safetensors").touch()
            raise KeyboardInterrupt
    assert folder.parent == tmp_path / "checkpoints" and (folder / "seed0.safetensors").exists()


def test_what_a_stage_writes_is_in_place_before_its_checkpoints_go():
    with Outs() as to:
        to.name = "demo/item"
        curve = pd.DataFrame({"step": [1, 2], "loss": [3.0, 2.0]})
        runs = [SimpleNamespace(name=f"seed{i}", seed=i) for i in range(2)]

        def fit(run, accelerator):
            assert accelerator.device.type == "cpu"
            return {"seed": run.seed}, curve, {"w": np.ones(2, np.float32)}

        large.train_each(runs, fit, to, "scores.csv", "cpu")
        results, data = Path("reports/results/demo/item"), Path("data/demo/item")
        assert pd.read_csv(results / "scores.csv").seed.tolist() == [0, 1]
        assert pd.read_csv(results / "history.csv").step.tolist() == [1, 2, 1, 2]
        assert files.read_weights(data / "seed0.safetensors")["w"].tolist() == [1, 1]
    assert sorted(p.name for p in results.iterdir()) == ["history.csv", "scores.csv"]
