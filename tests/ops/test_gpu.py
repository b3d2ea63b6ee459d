"""A machine with NVIDIA's GPUs that there is not: a driver, a wheel, devices; what is seen, refused and said."""

import pytest
import torch

from attnrate.core.errors import UserError
from attnrate.ops import gpu


def test_a_node_that_fits_is_taken_as_it_is(nvidia):
    nvidia()
    world = gpu.look()
    assert world.driver == "580.65.06" and len(world.cards) == len(world.devices) == 8 and world.oldest == 75
    assert world.devices[0] == gpu.Device("NVIDIA A100-SXM4-80GB", 80.0, (8, 0))
    assert gpu.problem(world) is None
    gpu.require("cuda")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"driver": "535.104.05", "seen": 0},
            "driver 535.104.05 of 8 x NVIDIA A100-SXM4-80GB is too old: PyTorch {torch}, built for CUDA 13.0, needs "
            "580 or newer; what would fit is such a driver, or a PyTorch built for CUDA 12 (PyTorch's installation",
        ),
        ({"driver": "390.1", "seen": 0}, "what would fit is such a driver; or `-S device=cpu`"),
        ({"driver": None, "seen": 0}, "no NVIDIA driver answers (nvidia-smi); on a cluster ask for a GPU"),
        ({"wheel": None, "seen": 0}, "is built without CUDA"),
        ({"seen": 0}, "sees none of 8 x NVIDIA A100-SXM4-80GB, although driver 580.65.06 fits"),
        ({"name": "Tesla V100", "capability": (7, 0)}, "Tesla V100 has compute capability 7.0"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(nvidia, changes, says):
    nvidia(**changes)
    with pytest.raises(UserError) as e:
        gpu.require("cuda")
    text = str(e.value)
    assert text.startswith("the paper profile needs a GPU: ") and says.format(torch=torch.__version__) in text
    assert text.endswith("; or `-S device=cpu`, if it is a CPU that you want") and "\n" not in text
    gpu.require("cpu")
    gpu.require("auto")


def test_hidden_devices_are_named(nvidia, monkeypatch):
    nvidia(seen=0)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "CUDA_VISIBLE_DEVICES= hides 8 x NVIDIA" in gpu.problem(gpu.look())


def test_without_a_driver_there_is_nothing_to_ask(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu.driver() == (None, ())


@pytest.mark.parametrize(
    ("named", "seen", "expected"),
    [
        (None, 3, ["0", "1", "2"]),
        ("5,7", 2, ["5", "7"]),
        ("GPU-8932f937, GPU-a", 2, ["GPU-8932f937", "GPU-a"]),
        ("0,9,1", 1, ["0"]),  # CUDA stops at the first that is not there
        ("", 0, []),
        (None, 0, []),
    ],
)
def test_each_visible_gpu_has_a_name_of_its_own(nvidia, named, seen, expected):
    nvidia(seen=seen)
    assert gpu.visible({} if named is None else {"CUDA_VISIBLE_DEVICES": named}) == expected
