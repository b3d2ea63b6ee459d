"""Where a model is trained, and what a user hears who has no GPU that will do."""

import pytest
import torch

from attnrate.core.errors import UserError
from attnrate.large import device
from attnrate.large import loop as large


def driver(tmp_path, monkeypatch, version):
    text = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Wed Mar  6 2024\nGCC version: 12.3.0\n"
    (tmp_path / "version").write_text(text)
    monkeypatch.setattr(device, "DRIVER", tmp_path / "version")


def test_auto_and_cpu_take_the_cpu_where_there_is_nothing_else(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device.choose("auto").type == device.choose("cpu").type == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert [device.choose(name).type for name in ("auto", "cuda", "cpu")] == ["cuda", "cuda", "cpu"]


@pytest.mark.parametrize(
    ("wheel", "version", "says"),
    [
        (
            "13.0",
            "550.54.15",
            "driver is 550.54.15, and its wheel for CUDA 13.0 needs 580 or newer; a wheel for CUDA 12",
        ),
        ("13.0", "470.82.01", "driver is 470.82.01, and its wheel for CUDA 13.0 needs 580 or newer; update it"),
        ("13.0", "580.65.06", "no device of CUDA 13.0 is visible"),
        ("13.0", None, "no NVIDIA driver is loaded, and its wheel is for CUDA 13.0"),
        (None, "580.65.06", "its wheel is for CPUs alone"),
    ],
)
def test_cuda_without_a_gpu_is_refused_with_driver_wheel_and_what_fits(tmp_path, monkeypatch, wheel, version, says):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", wheel)
    monkeypatch.setattr(device, "DRIVER", tmp_path / "version")
    if version:
        driver(tmp_path, monkeypatch, version)
    with pytest.raises(UserError, match=rf"^device = cuda, but PyTorch .*{says}.*-S device=cpu"):
        large.make_accelerator("cuda")


def test_a_gpu_without_bfloat16_trains_in_single_precision_and_says_so(monkeypatch, capsys):
    given = []
    monkeypatch.setattr(large, "Accelerator", lambda **options: given.append(options))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Tesla V100")
    for has in (True, False):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation, has=has: has)
        large.make_accelerator("cuda")
    assert given == [{"cpu": False, "mixed_precision": how} for how in ("bf16", "no")]
    assert capsys.readouterr().err.startswith("Tesla V100 has no bfloat16")
