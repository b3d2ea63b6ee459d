"""A machine with NVIDIA's GPUs that there is not."""

import sys
from types import SimpleNamespace

import pytest
import torch


@pytest.fixture
def nvidia(tmp_path, monkeypatch):
    """nvidia(driver, wheel, seen): a node of 8 GPUs, of which PyTorch sees some."""

    def make(driver="580.65.06", wheel="13.0", seen=8, name="NVIDIA A100-SXM4-80GB", capability=(8, 0), cards=8):
        tool = tmp_path / "nvidia-smi"
        lines = [f"{driver}, {name}"] * cards
        failed = "sys.exit('NVIDIA-SMI has failed')" if driver is None else ""
        tool.write_text(f"#!{sys.executable}\nimport sys\n{failed}\nprint({chr(10).join(lines)!r})\n")
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        monkeypatch.setattr(torch.version, "cuda", wheel)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: seen > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: seen)
        monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: ["sm_75", "sm_80", "sm_120a", "compute_120"])
        own = SimpleNamespace(name=name, total_memory=80e9, major=capability[0], minor=capability[1])
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda i: own)

    return make
