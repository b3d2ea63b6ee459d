import gc
import itertools
import json
import os
import signal
import subprocess
import sys
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch import nn

from attnrate.core.errors import UserError
from attnrate.large import checkpoint, loop as large
from attnrate.large.schedules import SCHEDULES, factor

SCRIPT = Path(__file__).with_name("killed.py")
RESULTS = ("weights.safetensors", "history.csv")


def start(folder, pause):
    environment = os.environ | {"PYTHONPATH": str(SCRIPT.parents[2] / "src")}
    return subprocess.Popen([sys.executable, str(SCRIPT), str(folder), str(pause)], env=environment)


def saved_step(path):
    try:
        with safe_open(path, "pt") as f:
            return json.loads(f.metadata()["state"])["step"]
    except FileNotFoundError:
        return 0


def test_killed_runs_end_in_the_same_bytes(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    whole.mkdir(), broken.mkdir()
    assert start(whole, 0).wait(120) == 0
    steps = [0]
    for _ in range(2):
        process = start(broken, 0.02)
        end = time.monotonic() + 120
        while saved_step(broken / "run.safetensors") <= steps[-1]:
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        steps.append(saved_step(broken / "run.safetensors"))
    assert 0 < steps[1] < steps[2] < 120 and not (broken / "weights.safetensors").exists()
    assert start(broken, 0).wait(120) == 0
    for name in RESULTS:
        assert (whole / name).read_bytes() == (broken / name).read_bytes()


class Line:
    def order(self, rng):
        return list(rng.permutation(32).reshape(-1, 8))

    def batch(self, index, generator):
        x = torch.tensor(index, dtype=torch.float32)[:, None] / 32
        return {"x": x, "y": torch.tensor(index > 15).long()}


def fit(tmp_path, accelerator=None, **recipe):
    torch.manual_seed(0)
    model = nn.Linear(1, 2)
    kwargs = {"steps": 40, "lr": 0.1, "checkpoint": 10} | recipe
    history = large.train(
        model,
        Line(),
        large.classification_loss(),
        large.Recipe(**kwargs),
        seed=0,
        checkpoint=tmp_path / "c.safetensors",
        accelerator=accelerator,
    )
    return model, history


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


@pytest.mark.parametrize("optimiser", ["adamw", "sgd"])
def test_learns_and_resumes_from_the_last_step(tmp_path, optimiser):
    model, history = fit(tmp_path, optimiser=optimiser, schedule="one-cycle", warmup=5)
    assert history.loss.iloc[-1] < history.loss.iloc[0] and list(history.columns) == ["step", "lr", "loss"]
    again, same = fit(tmp_path, optimiser=optimiser, schedule="one-cycle", warmup=5)  # nothing left to do
    assert torch.equal(model.weight, again.weight) and history.equals(same)


def test_loss_that_is_not_finite_names_step_rate_and_checkpoint(tmp_path):
    fit(tmp_path, steps=40, checkpoint=20)

    class Broken(Line):
        def batch(self, index, generator):
            return {k: v * float("nan") if k == "x" else v for k, v in super().batch(index, generator).items()}

    recipe = large.Recipe(steps=80, lr=0.1, checkpoint=20)
    with pytest.raises(UserError, match=r"step 41 of 80 \(learning rate 0\.\d+; the last good checkpoint, .* step 40"):
        large.train(
            nn.Linear(1, 2),
            Broken(),
            large.classification_loss(),
            recipe,
            seed=0,
            checkpoint=tmp_path / "c.safetensors",
        )


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
        large.train(
            nn.Linear(1, 2),
            Empty(),
            large.classification_loss(),
            large.Recipe(steps=1, lr=0.1),
            seed=0,
            checkpoint=tmp_path / "c.safetensors",
        )


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


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedules_rise_to_one_and_never_above(schedule):
    values = [factor(schedule, step, 100, 20) for step in range(100)]
    assert max(values) <= 1 and min(values) > 0 and np.argmax(values) in (0, 19, 20)
    assert all(a <= b for a, b in itertools.pairwise(values[:20]))
    assert all(a >= b for a, b in itertools.pairwise(values[20:]))
