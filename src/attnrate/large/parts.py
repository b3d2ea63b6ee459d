"""Parts of a stage's runs, each an item of its matrix: `all` on a laptop, what trains side by side on several GPUs.

`seed0` holds every run of that seed, `permuted_seed0` one run, which writes permuted_seed0.safetensors.
"""

from collections.abc import Iterable
from pathlib import Path


def holds(part: str, run: str) -> bool:
    return part in ("all", run) or run.endswith(f"_{part}")


def weights(folder: Path, parts: Iterable[str], run: str) -> Path:
    """Those of a run, below the folder of its part; the stage `validate` has seen that there is one."""
    return folder / next(part for part in parts if holds(part, run)) / f"{run}.safetensors"
