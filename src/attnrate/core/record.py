"""What a result came from, beside the result: data set, profile, seeds, parameters, package versions, device."""

import platform
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = (
    "accelerate", "numpy", "pandas", "sacrebleu", "safetensors", "scipy", "sentencepiece", "timm", "torch", "torchvision",
    "transformers",
)  # fmt: skip


def make(name: str, cfg: Any, sections: Mapping[str, type], flags: Mapping[str, Any]) -> dict:
    """The same machine kind, parameters and packages give the same record: it holds no time and no path."""
    params = cfg.model_dump()
    named = [params[head][schema.data_key] for head, schema in sections.items() if schema.data_key]
    return {
        "stage": name,
        "profile": params["profile"],
        "data": named or ["synthetic"],
        "seeds": dict(_seeds(params)),
        "parameters": params,
        "flags": dict(flags),
        "python": platform.python_version(),
        "packages": {p: version(p) for p in PACKAGES if p in sys.modules},
        "device": device(),
    }


def _seeds(params: Mapping, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in params.items():
        if isinstance(value, Mapping):
            yield from _seeds(value, f"{prefix}{key}.")
        elif "seed" in key:
            yield prefix + key, value


def device() -> dict:
    """The processor, what PyTorch uses of it, and the GPUs, where PyTorch is loaded."""
    found = {"system": platform.system(), "machine": platform.machine(), "processor": processor()}
    if torch := sys.modules.get("torch"):
        found |= {"threads": torch.get_num_threads(), "vectors": torch.backends.cpu.get_cpu_capability()}
        found["gpus"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return found


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if "model name" in line), platform.processor())
