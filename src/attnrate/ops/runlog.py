"""The run log: what each run of a stage took and ran on. Every stage appends a line; git ignores it.

`make repro` keeps the last run of each stage in reports/runs.json, which is in git: `attnrate trace` joins it with
dvc.lock, where the parameters and the hashes are.
"""

import hashlib
import json
import platform
import resource
import sys
from importlib.metadata import version
from pathlib import Path

import yaml

from attnrate.core import files

LOG, KEPT = Path(".runs.jsonl"), Path("reports/runs.json")
PACKAGES = (
    *("accelerate", "numpy", "pandas", "sacrebleu", "safetensors", "scipy"),
    *("sentencepiece", "timm", "torch", "torchvision", "transformers"),
)


def append(stage: str, seconds: float) -> None:
    """The run that ends now."""
    own, largest = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    at_once = sys.modules["attnrate.cores"].most_at_once if "attnrate.cores" in sys.modules else 1
    peak = max(own, at_once * largest) / (2**30 if sys.platform == "darwin" else 2**20)
    print(f"{stage}: {seconds:.1f} s, {peak:.2f} GB peak", file=sys.stderr)
    entry = {"stage": stage, "seconds": round(seconds, 1), "peak_gb": round(peak, 2), "on": machine()}
    entry["params"] = parameters()
    with LOG.open("a", encoding="utf-8") as f:
        f.write(json.dumps(entry) + "\n")


def short(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:8]


def parameters(path: Path = Path("params.yaml")) -> str:
    return short(path.read_bytes()) if path.exists() else ""


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


def latest(log: Path = LOG) -> dict[str, dict]:
    """The last run of each stage."""
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return {run.pop("stage"): run for run in map(json.loads, lines)}


def outs(lock: str) -> dict[str, dict[str, str]]:
    """The hash of every out by stage, from the text of dvc.lock."""
    stages = yaml.load(lock, yaml.CSafeLoader)["stages"]
    return {name: {out["path"]: out["md5"] for out in stage.get("outs", [])} for name, stage in stages.items()}


def digests() -> dict[str, str]:
    """One short hash for the outs of each stage of dvc.lock."""
    found = outs(Path("dvc.lock").read_text(encoding="utf-8"))
    return {name: short(repr(sorted(own.items())).encode()) for name, own in found.items()}


def kept() -> dict[str, dict]:
    """The runs of reports/runs.json; each has the digest of the outs it made."""
    return unpacked(files.read_json(KEPT)) if KEPT.exists() else {}


def unpacked(content: dict) -> dict[str, dict]:
    return {name: run | {"on": content["machines"][run["on"]]} for name, run in content["stages"].items()}


def last() -> dict[str, dict]:
    """The last run of every stage of dvc.lock: of the log, or as it was kept.

    An experiment that was put back leaves its runs in the log. They had other parameters than params.yaml now has, and
    give way to a kept run that made the outs of dvc.lock.
    """
    here, known, params, runs = latest(), kept(), parameters(), {}
    for name, made in digests().items():
        run, old = here.get(name), known.get(name)
        if run and (run.get("params") == params or old is None or old["outs"] != made):
            runs[name] = {key: run[key] for key in ("seconds", "peak_gb", "on")} | {"outs": made}
        elif old:
            runs[name] = old
    return runs


def keep() -> dict[str, dict]:
    """Write reports/runs.json anew."""
    runs = last()
    files.write_json(KEPT, packed(runs))
    return runs


def packed(runs: dict[str, dict]) -> dict:
    """Runs with each machine once."""
    machines = []
    for run in runs.values():
        if run["on"] not in machines:
            machines.append(run["on"])
    return {"machines": machines, "stages": {n: run | {"on": machines.index(run["on"])} for n, run in runs.items()}}
