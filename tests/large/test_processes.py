"""One training over two processes (gloo) is the training of one process, and survives the loss of both."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest
from safetensors.numpy import load_file

from tests.conftest import ROOT
from tests.large.test_loop import saved_step
from tests.vit.test_train import prepare

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("several.py")
PYTHON = [sys.executable]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]


def start(launch, folder, pause=0.0):
    folder.mkdir(exist_ok=True)
    environment = os.environ | {"PYTHONPATH": str(SCRIPT.parents[2] / "src"), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([*launch, str(SCRIPT), str(folder), str(pause)], env=environment)


def history(folder):
    return pd.read_csv(folder / "history.csv")


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    assert start(TORCHRUN, folder).wait(120) == 0
    return folder


def test_two_processes_train_the_model_of_one(two, tmp_path):
    assert start(PYTHON, tmp_path).wait(120) == 0
    assert set(history(tmp_path).processes) == {1} and set(history(two).processes) == {2}
    assert np.allclose(history(tmp_path).loss, history(two).loss, rtol=0, atol=1e-6)
    one, other = (load_file(folder / "weights.safetensors") for folder in (tmp_path, two))
    assert all(np.abs(one[name] - other[name]).max() < 1e-6 for name in one)


def test_two_killed_processes_end_in_the_same_bytes(two, tmp_path):
    launcher, end = start(TORCHRUN, tmp_path, pause=0.02), time.monotonic() + 120
    while not saved_step(tmp_path / "run.safetensors"):
        assert launcher.poll() is None and time.monotonic() < end
        time.sleep(0.01)
    for process in (*psutil.Process(launcher.pid).children(recursive=True), launcher):
        process.kill()
    launcher.wait()
    assert 0 < saved_step(tmp_path / "run.safetensors") < 60 and not (tmp_path / "weights.safetensors").exists()
    assert start(TORCHRUN, tmp_path).wait(120) == 0
    for name in ("weights.safetensors", "history.csv"):
        assert (two / name).read_bytes() == (tmp_path / name).read_bytes()


def sweep(folder):
    """A stage of two processes, as `launch` in params.yaml may ask for it."""
    env = {k: v for k, v in os.environ.items() if k != "DVC_STAGE"} | {"OMP_NUM_THREADS": "1"}
    command = [*TORCHRUN, str(ROOT / "stages" / "vit_sweep.py"), "qk-3"]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300)


def test_a_stage_of_two_processes_writes_and_logs_once(tmp_path):
    prepare(tmp_path, epochs=2)
    done = sweep(tmp_path)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["stage"] for line in (tmp_path / ".runs.jsonl").read_text().splitlines()] == ["vit_sweep"]
    assert len(pd.read_csv(tmp_path / "reports/results/vit_sweep/qk-3/scores.csv")) == 1
    assert [p.name for p in (tmp_path / "data/vit_sweep/qk-3").iterdir()] == ["original_seed0.safetensors"]
    assert not list((tmp_path / ".scratch").glob("*.draft*"))
    assert not list((tmp_path / ".scratch/checkpoints").iterdir())


def test_a_stage_of_two_processes_that_fails_writes_and_logs_nothing(tmp_path):
    prepare(tmp_path, epochs=2)
    (tmp_path / "data/vit_images/images.npz").unlink()
    done = sweep(tmp_path)
    assert done.returncode != 0 and "vit_sweep: data/vit_images/images.npz is missing" in done.stderr
    assert not (tmp_path / ".runs.jsonl").exists() and not (tmp_path / "reports").exists()
