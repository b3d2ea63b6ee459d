"""The GPUs that the paper profile needs: which there are, and where PyTorch sees none, why, and what would fit."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from attnrate.core.errors import UserError
from attnrate.large.device import OLDEST  # of NVIDIA's CUDA Compatibility, minor versions, table 1

COMMAND = ["nvidia-smi", "--query-gpu=driver_version,name", "--format=csv,noheader"]


@dataclass(frozen=True)
class Device:
    name: str
    gigabytes: float
    capability: tuple[int, int]


@dataclass(frozen=True)
class World:
    torch: str  # PyTorch's version
    wheel: str | None  # the CUDA it is built for; None without any
    oldest: int  # the least compute capability it is built for, 75 for 7.5
    driver: str | None  # NVIDIA's
    cards: tuple[str, ...]  # what the driver sees
    hidden: str | None  # CUDA_VISIBLE_DEVICES
    devices: tuple[Device, ...]  # what PyTorch can use


def driver() -> tuple[str | None, tuple[str, ...]]:
    """Version of NVIDIA's driver and names of its GPUs, from nvidia-smi, which comes with it."""
    if not shutil.which(COMMAND[0]):
        return None, ()
    try:
        done = subprocess.run(COMMAND, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None, ()
    rows = [line.split(", ", 1) for line in done.stdout.splitlines() if ", " in line] if done.returncode == 0 else []
    return (rows[0][0] if rows else None), tuple(name for _, name in rows)


def look() -> World:
    found, cards = driver()
    built = [int(a.removeprefix("sm_").rstrip("af")) for a in torch.cuda.get_arch_list() if a.startswith("sm_")]
    devices = []
    for i in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        own = torch.cuda.get_device_properties(i)
        devices.append(Device(own.name, own.total_memory / 1e9, (own.major, own.minor)))
    return World(
        torch.__version__,
        torch.version.cuda or torch.version.hip,
        min(built, default=0),
        found,
        cards,
        os.environ.get("CUDA_VISIBLE_DEVICES"),
        tuple(devices),
    )


def visible(environ: Mapping[str, str] = os.environ) -> list[str]:
    """What CUDA_VISIBLE_DEVICES would be for each GPU alone, in order."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    named = environ.get("CUDA_VISIBLE_DEVICES")
    return [str(i) for i in range(count)] if named is None else [d.strip() for d in named.split(",")][:count]


def problem(world: World) -> str | None:
    """Why no GPU can be used, and what would help; None if one can."""
    built = f"PyTorch {world.torch}, built for CUDA {world.wheel},"
    install = "PyTorch's installation page has the command"
    if world.devices:
        name, capability = world.devices[0].name, world.devices[0].capability
        if capability[0] * 10 + capability[1] >= world.oldest:
            return None
        return (
            f"{name} has compute capability {capability[0]}.{capability[1]}, and {built} knows "
            f"{world.oldest / 10:g} and newer; what would fit is a PyTorch built for an older CUDA ({install})"
        )
    if world.wheel is None:
        return f"PyTorch {world.torch} is built without CUDA; what would fit is one built with it ({install})"
    if world.driver is None:
        return (
            "no NVIDIA driver answers (nvidia-smi); on a cluster ask for a GPU, into a container pass one, on a "
            f"machine of your own install driver {OLDEST.get(major(world.wheel), 'of your GPU')} or newer"
        )
    cards = f"{len(world.cards)} x {world.cards[0]}"
    if (need := OLDEST.get(major(world.wheel), 0)) > major(world.driver):
        fit = max((cuda for cuda, least in OLDEST.items() if major(world.driver) >= least), default=None)
        older = f", or a PyTorch built for CUDA {fit} ({install})" if fit else ""
        return (
            f"driver {world.driver} of {cards} is too old: {built} needs {need} or newer; what would fit is such a "
            f"driver{older}"
        )
    if world.hidden is not None:
        return f"CUDA_VISIBLE_DEVICES={world.hidden} hides {cards} from PyTorch; unset it, or name a GPU that is there"
    return (
        f"{built} sees none of {cards}, although driver {world.driver} fits; "
        "`python -c 'import torch; torch.zeros(1).cuda()'` says why"
    )


def major(version: str) -> int:
    return int(version.partition(".")[0])


def require(device: str, instead: str = "-S device=cpu") -> None:
    """Refuse to begin without a GPU where `device` is cuda, as the paper profile has it: a CPU would take years."""
    if device == "cuda" and (why := problem(look())):
        raise UserError(f"the paper profile needs a GPU: {why}; or `{instead}`, if it is a CPU that you want")
