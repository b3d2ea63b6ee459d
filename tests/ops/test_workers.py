"""Workers of one machine, with lists of GPUs that are not there; who gets which stage when workers come late."""

import os
import re
import sys
import threading
import time
from types import ModuleType

import pytest
from distributed import Client, LocalCluster, get_worker

from attnrate.ops.workers import BOTH, CPU, GPU, Kind, Local, in_order, layout, near, spread
from tests.conftest import ROOT

EIGHT = [str(i) for i in range(8)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (dict(given=None, devices=[], split=False), [Kind(BOTH)] * 8),
        (dict(given=3, devices=[], split=True), [Kind(BOTH)] * 3),
        (
            dict(given=None, devices=["0", "GPU-b"], split=True),
            [Kind(GPU, "0"), Kind(GPU, "GPU-b"), *[Kind(CPU, "")] * 6],
        ),
        (dict(given=None, devices=EIGHT, split=True), [*(Kind(GPU, d) for d in EIGHT), Kind(CPU, "")]),
        (dict(given=3, devices=["4", "5"], split=True), [Kind(BOTH, "4"), Kind(BOTH, "5"), Kind(BOTH, "4")]),
        (dict(given=None, devices=["4", "5"], split=False), [Kind(BOTH, d) for d in ["4", "5"] * 4]),
        (
            dict(given=None, devices=["1"], split=True, launch="srun --gpus=1 python"),
            [Kind(GPU, "1"), *[Kind(CPU, "")] * 7],
        ),
        (
            dict(given=None, devices=EIGHT, split=True, launch="accelerate launch"),
            [Kind(GPU, "0,1,2,3,4,5,6,7"), *[Kind(CPU, "")] * 7],
        ),
    ],
)
def test_one_worker_for_each_gpu_and_others_for_the_rest(options, expected):
    assert layout(**{"cores": 16, "threads": 2, "launch": "python"} | options) == expected


@pytest.mark.slow
def test_workers_see_their_own_gpu_and_offer_what_they_have():
    kinds = [Kind(GPU, "6"), Kind(GPU, "GPU-7"), Kind(CPU, "")]
    with Local(kinds) as local, Client(local) as client:
        client.wait_for_workers(3)
        seen = client.run(lambda: os.environ["CUDA_VISIBLE_DEVICES"])
        offered = {a: w["resources"] for a, w in client.scheduler_info(n_workers=-1)["workers"].items()}
        assert {(seen[a], *offered[a]) for a in seen} == {("6", "GPU"), ("GPU-7", "GPU"), ("", "CPU")}
        shares = client.run(lambda: int(os.environ["ATTNRATE_CORES"]))
        assert len(set(shares.values())) == 1 and sum(shares.values()) <= max(3, os.cpu_count())


def test_dask_cuda_gives_the_cores_beside_a_gpu(monkeypatch):
    assert near("3") == []  # not installed here
    package, plugins, utils = (ModuleType(name) for name in ("dask_cuda", "dask_cuda.plugins", "dask_cuda.utils"))
    package.__spec__ = sys.__spec__
    plugins.CPUAffinity = lambda cores: ("cores", cores)
    utils.get_cpu_affinity = lambda device: {3: [0, 1], "GPU-a": [2]}[device]
    for module in (package, plugins, utils):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    assert near("3") == [("cores", [0, 1])] and near("GPU-a") == [("cores", [2])]
    assert near("") == near(None) == near("0,1") == []


BEGAN, END = {name: threading.Event() for name in ("first", "second", "third", "last")}, threading.Event()


@pytest.fixture
def told():
    """Stages of this process end at the latest with the test."""
    for event in (END, *BEGAN.values()):
        event.clear()
    yield
    END.set()


def busy(name):
    """A stage that lasts until it is told to end."""
    BEGAN[name].set()
    END.wait(60)
    return get_worker().name


def sent(dask_scheduler):
    return sum(len(worker.processing) for worker in dask_scheduler.workers.values())


@pytest.mark.slow
def test_a_worker_that_comes_late_gets_the_first_of_what_waits(told):
    """Behind a stage that runs, where Dask would leave it; and no worker gets two, or what it has not."""
    options = {"processes": False, "dashboard_address": ":0", "silence_logs": 50}
    with LocalCluster(n_workers=1, threads_per_worker=1, resources=GPU, **options) as local, Client(local) as client:
        client.run_on_scheduler(in_order)
        stages = [client.submit(busy, n, key=f"{n}-1", resources=GPU, priority=-i) for i, n in enumerate(BEGAN)]
        end = time.monotonic() + 20
        while client.run_on_scheduler(sent) < len(BEGAN) and time.monotonic() < end:
            time.sleep(0.05)  # else the last may be sent when a late worker is there, to that one
        assert BEGAN["first"].wait(10)
        local.scale(3)
        end = time.monotonic() + 20
        while not BEGAN["third"].wait(0.2) and time.monotonic() < end:
            client.run_on_scheduler(spread)
        assert BEGAN["second"].is_set() and BEGAN["third"].is_set()
        client.run_on_scheduler(spread)
        assert not BEGAN["last"].wait(0.5)
        END.set()
        assert set(client.gather(stages[:3])) == {0, 1, 2}


@pytest.mark.slow
def test_as_many_jobs_are_asked_for_as_stages_wait(told):
    """By the call that docs/cluster.md has for Slurm: by itself Dask takes a stage for half a second's work."""
    (options,) = re.findall(r"cluster\.adapt\((.*)\)", (ROOT / "docs" / "cluster.md").read_text())
    with (
        LocalCluster(
            n_workers=0, threads_per_worker=1, processes=False, resources=GPU, dashboard_address=":0", silence_logs=50
        ) as local,
        Client(local) as client,
    ):
        local.adapt(**eval(f"dict({options})"))
        stages = [client.submit(busy, name, key=f"{name}-1", resources=GPU) for name in ("first", "second", "third")]
        end = time.monotonic() + 20
        while len(local.scheduler.workers) < 3 and time.monotonic() < end:
            time.sleep(0.1)
        assert len(local.scheduler.workers) == 3 and len(local.worker_spec) == 3
        END.set()
        client.gather(stages)
