"""Workers of one machine, with lists of GPUs that are not there."""

import os
import sys
from types import ModuleType

import pytest
from distributed import Client

from attnrate.ops.workers import BOTH, CPU, GPU, Kind, Local, layout, near

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
