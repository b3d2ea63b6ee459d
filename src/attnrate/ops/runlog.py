"""The run log: what each run of a stage took and ran on. Every stage appends a line; git ignores it.

`make repro` keeps the last run of each stage in reports/runs.json, which is in git: `attnrate trace` joins it with
dvc.lock, where the parameters and the hashes are.
"""

import json
import platform
import resource
import sys
from importlib.metadata import version
from pathlib import Path

import yaml

LOG, KEPT = Path(".runs.jsonl"), Path("reports/runs.json")
PACKAGES = (
    *("accelerate", "numpy", "pandas", "sacrebleu", "safetensors", "scipy"),
    *("sentencepiece", "timm", "torch", "torchvision", "transformers"),
)


def append(stage: str, seconds: float) -> None:
    """The run that ends now."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**30 if sys.platform == "darwin" else 2**20)
    print(f"{stage}: {seconds:.1f} s, {peak:.2f} GB peak", file=sys.stderr)
    entry = {"stage": stage, "seconds": round(seconds, 1), "peak_gb": round(peak, 2), "on": machine()}
    with LOG.open("a", encoding="utf-8") as f:
        f.write(json.dumps(entry) + "\n")


def machine() -> dict:
    """The processor, what PyTorch uses of it, the GPUs, where PyTorch is loaded, and the versions of what is."""
    found = {"system": f"{platform.system()} {platform.machine()}", "processor": processor()}
    if torch := sys.modules.get("torch"):
        found |= {"threads": torch.get_num_threads(), "vectors": torch.backends.cpu.get_cpu_capability()}
        found["gpus"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    packages = {p: version(p) for p in PACKAGES if p in sys.modules}
    return found | {"python": platform.python_version(), "packages": packages}


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if "model name" in line), platform.processor())


def outs(lock: Path = Path("dvc.lock")) -> dict[str, dict[str, str]]:
    """The hash of every out by stage, from dvc.lock."""
    stages = yaml.load(lock.read_text(encoding="utf-8"), yaml.CSafeLoader)["stages"]
    return {name: {out["path"]: out["md5"] for out in stage.get("outs", [])} for name, stage in stages.items()}
