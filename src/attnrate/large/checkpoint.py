"""Checkpoints of long trainings: one safetensors file each, in .scratch/, replaced at once, removed on success.

A checkpoint belongs to a hash of parameters, inputs and code, so that none is ever continued under other conditions.
"""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from attnrate.core import files

FOLDER = files.SCRATCH / "checkpoints"


def key(params: Any, inputs: Iterable[Path]) -> str:
    """A hash of the parameters, the bytes of the inputs, all library code that is loaded, and what else moves bits."""
    code = {Path(m.__file__) for n, m in list(sys.modules.items()) if n.startswith("attnrate") and m.__file__}
    code.add(Path(getattr(sys.modules["__main__"], "__file__", sys.executable)))
    found = hashlib.sha256(json.dumps(params, sort_keys=True, default=str).encode())
    found.update(f"{torch.__version__} {torch.get_num_threads()}".encode())
    for path in (*sorted(code), *(p for given in inputs for p in (sorted(given.rglob("*")) or [given]))):
        if path.is_file():
            with path.open("rb") as f:
                found.update(hashlib.file_digest(f, "sha256").digest())
    return found.hexdigest()[:16]


@contextmanager
def kept(name: str, params: Any, inputs: Iterable[Path]) -> Iterator[Path]:
    """A folder for the checkpoints of one stage; when the block ends well it goes, with any older one of that name."""
    name = name.replace("/", "-")
    folder = FOLDER / f"{name}-{key(params, inputs)}"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    except KeyboardInterrupt:
        if any(folder.glob("*.safetensors")):
            raise KeyboardInterrupt(f"goes on from the last checkpoint, in {folder}") from None
        raise
    for old in FOLDER.glob(f"{name}-{'[0-9a-f]' * 16}"):
        shutil.rmtree(old, ignore_errors=True)


def random_states(accelerator: Accelerator) -> dict[str, Tensor]:
    """The random numbers of every process, a row each; every process calls this."""
    own = {"rng.cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        own["rng.cuda"] = torch.cuda.get_rng_state()
    return {name: accelerator.gather(state[None].to(accelerator.device)).cpu() for name, state in own.items()}


def save(
    path: Path, model: nn.Module, optimiser: torch.optim.Optimizer, random: dict[str, Tensor], state: dict
) -> None:
    """Weights, optimiser, the random numbers of all processes, and `state` as JSON."""
    tensors = {f"model.{k}": v for k, v in model.state_dict().items()}
    for i, values in optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{i}.{k}": v for k, v in values.items() if isinstance(v, Tensor)}
    tensors |= random
    draft = path.with_suffix(".draft")
    files.write_weights(draft, tensors, state=json.dumps(state))
    os.replace(draft, path)


def restore(
    path: Path, model: nn.Module, optimiser: torch.optim.Optimizer, rank: int = 0, world: int = 1
) -> dict | None:
    """Put a checkpoint back; its state, or None if there is none that can be read.

    Random numbers go back to the process that had them; another number of processes draws its own.
    """
    if not path.exists():
        return None
    try:
        with safe_open(path, "pt") as f:
            tensors = {k: f.get_tensor(k) for k in f.keys()}
            state = json.loads(f.metadata()["state"])
    except (SafetensorError, OSError, KeyError, ValueError) as e:
        print(f"{path}: unreadable checkpoint ({e}); starting anew", file=sys.stderr)
        return None
    model.load_state_dict({k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")})
    moments: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        if name.startswith("optimiser."):
            _, i, part = name.split(".", 2)
            moments.setdefault(int(i), {})[part] = value
    optimiser.load_state_dict({"state": moments, "param_groups": optimiser.state_dict()["param_groups"]})
    for name, put in (("rng.cpu", torch.set_rng_state), ("rng.cuda", torch.cuda.set_rng_state)):
        if len(tensors.get(name, ())) == world and (name == "rng.cpu" or torch.cuda.is_available()):
            put(tensors[name][rank].clone())  # PyTorch reads a state from where its memory begins
    return state
