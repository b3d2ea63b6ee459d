"""What a model is trained and measured on: a GPU or the CPU, as `device` in params.yaml says."""

import re
import warnings
from pathlib import Path

import torch

from attnrate.core.errors import UserError

DRIVER = Path("/proc/driver/nvidia/version")
OLDEST = {12: 525, 13: 580}  # driver that a wheel for this CUDA needs


def choose(name: str) -> torch.device:
    """`auto`: a GPU if PyTorch can use one, else the CPU; `cuda`: no training in silence on the CPU."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own on an old driver: ours says more
        found = name != "cpu" and torch.cuda.is_available()
    if name == "cuda" and not found:
        raise UserError(
            f"device = cuda, but PyTorch {torch.__version__} can use no GPU here: {reason(torch.version.cuda)}; "
            "PyTorch's installation page has the command for a wheel that fits a driver, and -S device=cpu trains on "
            "the CPU all the same"
        )
    return torch.device("cuda" if found else "cpu")


def reason(wheel: str | None) -> str:
    """Why a wheel for that CUDA finds no GPU, in words."""
    if wheel is None:
        return "its wheel is for CPUs alone"
    try:
        version = re.search(r"\s(\d+)\.[\d.]+\s", DRIVER.read_text())
    except OSError:
        return f"no NVIDIA driver is loaded, and its wheel is for CUDA {wheel}"
    oldest = OLDEST.get(int(wheel.partition(".")[0]), 0)
    if version is None or int(version[1]) >= oldest:
        return f"the driver is there, but no device of CUDA {wheel} is visible (CUDA_VISIBLE_DEVICES?)"
    fits = max((cuda for cuda, driver in OLDEST.items() if driver <= int(version[1])), default=None)
    other = f"a wheel for CUDA {fits} fits it" if fits else "update it"
    return f"the driver is {version[0].strip()}, and its wheel for CUDA {wheel} needs {oldest} or newer; {other}"
