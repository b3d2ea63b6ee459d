"""One training over two processes (gloo) is the training of one process, and survives the loss of both."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file

from tests.conftest import ROOT
from tests.large.test_loop import saved_step
from tests.vit.test_train import prepare

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("several.py")
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]


def start(folder, processes=2, dropout=0.0, pause=0.0):
    """The processes, each told of the others as torchrun does; stages have torchrun itself, below."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, str(SCRIPT), str(folder), str(dropout), str(pause)]
    environment = os.environ | {"PYTHONPATH": str(SCRIPT.parents[2] / "src"), "OMP_NUM_THREADS": "1"}
    with socket.create_server(("127.0.0.1", 0)) as free:
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    told = [place | dict.fromkeys(("RANK", "LOCAL_RANK"), str(i)) | {"WORLD_SIZE": "2"} for i in range(2)]
    return [subprocess.Popen(command, env=environment | own) for own in (told if processes == 2 else [{}])]


def ended(processes):
    """All of them, well; where one has failed, another would wait for it."""
    try:
        return [process.wait(120) for process in processes] == [0] * len(processes)
    finally:
        for process in processes:
            process.kill()


def history(folder):
    return pd.read_csv(folder / "history.csv")


def test_two_processes_train_the_model_of_one(tmp_path):
    """Also where batches are augmented and items count differently; each process takes half of the parts."""
    single, two = tmp_path / "one", tmp_path / "two"
    assert ended(start(single, processes=1)) and ended(start(two))
    assert set(history(single).processes) == {1} and set(history(two).processes) == {2}
    assert np.allclose(history(single).loss, history(two).loss, rtol=0, atol=1e-12)
    one, other = (load_file(folder / "weights.safetensors") for folder in (single, two))
    assert all(np.abs(one[name] - other[name]).max() < 1e-9 for name in one)
    passes = [load_file(f)["passes"] for f in (single / "rank0.safetensors", *sorted(two.glob("rank*")))]
    assert passes == [240, 120, 120]


@pytest.fixture(scope="module")
def dropped(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dropped")
    assert ended(start(folder, dropout=0.3))
    return folder


def test_two_processes_drop_different_units(dropped):
    one, other = (load_file(dropped / f"rank{rank}.safetensors")["kept"] for rank in (0, 1))
    assert one.shape == other.shape and not (one == other).all(1).any()


def test_two_killed_processes_end_in_the_same_bytes_each_with_its_own_dropout(dropped, tmp_path):
    running, end = start(tmp_path, dropout=0.3, pause=0.02), time.monotonic() + 120
    while not saved_step(tmp_path / "run.safetensors"):
        assert all(process.poll() is None for process in running) and time.monotonic() < end
        time.sleep(0.01)
    for process in running:
        process.kill()
        process.wait()
    assert 0 < saved_step(tmp_path / "run.safetensors") < 60 and not (tmp_path / "weights.safetensors").exists()
    assert ended(start(tmp_path, dropout=0.3))
    for name in ("weights.safetensors", "history.csv"):
        assert (dropped / name).read_bytes() == (tmp_path / name).read_bytes()


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
