"""`make timings`, and the end of `make repro`: reports/runs.json and, from it, reports/costs.md and costs.json.

What each stage costs here, from the run log, and in the paper profile, with the wall time of all of them on 1 and 8
GPUs. No stage depends on it.
"""

import re
import sys
from pathlib import Path

from attnrate.core import files, params
from attnrate.ops import runlog, schedule

OUT, HOURS = Path("reports/costs.md"), Path("reports/costs.json")
AGAIN = "the same again, in DVC's cache"
NODES = ({"GPU": 1}, {"GPU": 1, "CPU": 2}, {"GPU": 8, "CPU": 8})  # workers; without CPU, the GPU's does all, one by one


def estimated() -> dict:
    """Hours of the paper profile's stages, and its plans, as they were last estimated."""
    return files.read_json(HOURS) if HOURS.exists() else {}


def slug(branch: str) -> str:
    """A branch as the command line names it: tables-2-and-3."""
    return re.sub(r"\W+", "-", branch.lower())


def branches(dvc: Path = Path("dvc.yaml")) -> dict[str, str]:
    """The branch of each stage; items of a matrix go by the name before their @."""
    return {name: stage["meta"]["branch"] for name, stage in params.read(dvc).stages.items()}


def in_order(runs: dict[str, dict], branch: dict[str, str]) -> dict[str, dict]:
    """The runs in the order of dvc.yaml, without stages that dvc.lock still has from another dvc.yaml."""
    return {name: run for stage in branch for name, run in runs.items() if name.partition("@")[0] == stage}


def by_branch(runs: dict[str, dict], branch: dict[str, str]) -> str:
    """Minutes and memory of each branch, in the order of their last stages."""
    runs, groups = in_order(runs, branch), {}
    for stage, run in runs.items():
        name = branch[stage.partition("@")[0]]
        groups[name] = [*groups.pop(name, []), run]
    lines = ["| branch | stages | minutes | peak memory (GB) |", "|---|---:|---:|---:|"]
    for name, own in [*groups.items(), ("**all**", list(runs.values()))]:
        minutes, peak = sum(run["seconds"] for run in own) / 60, max(run["peak_gb"] for run in own)
        lines.append(f"| {name} | {len(own)} | {minutes:.1f} | {peak:.1f} |")
    return "\n".join(lines)


def measured(runs: dict[str, dict], branch: dict[str, str]) -> list[str]:
    """Where stages ran, and what branches and stages took."""
    machines = dict.fromkeys(f"{run['on']['processor']} ({run['on']['system']})" for run in runs.values())
    return [
        f"Last run of each stage, on {', '.join(machines)}. Seconds are those of a stage's process, its imports "
        "included, DVC's own excluded.",
        "",
        by_branch(runs, branch),
        "",
        "| stage | seconds | peak memory (GB) |",
        "|---|---:|---:|",
        *(f"| {name} | {run['seconds']:.1f} | {run['peak_gb']:.2f} |" for name, run in runs.items()),
    ]


def markdown(runs: dict[str, dict], branch: dict[str, str], paper: str) -> str:
    lines = [
        "# Cost of each stage",
        "",
        "## Laptop profile, measured",
        "",
        *measured(runs, branch),
        "",
        "## Paper profile, estimated",
        "",
        paper,
    ]
    return "\n".join(lines) + "\n"


def plans(upstream: dict[str, set[str]], gpu: set[str], hours: dict[str, float]) -> list[dict]:
    """Wall hours of all stages on some nodes, of the longest chain, and of all work one after the other."""
    needs = {name: "GPU" if name in gpu else "CPU" for name in upstream}
    found = [{"workers": n, "hours": schedule.simulate(upstream, hours, needs, n).hours} for n in NODES]
    chain = max(schedule.chains(upstream, hours).values())
    return [*found, {"workers": {}, "hours": chain}]


def wall(found: dict) -> str:
    """The plans as a table."""
    lines = ["| workers | hours |", "|---|---:|"]
    for plan in found["plans"]:
        workers = ", ".join(f"{n} {kind}" for kind, n in plan["workers"].items()) or "any number: the longest chain"
        lines.append(f"| {workers} | {plan['hours']:.0f} |")
    return "\n".join(lines)


def estimate_paper(runs: dict[str, dict]) -> tuple[str, dict]:
    """The section on the paper profile, and its hours and plans."""
    from attnrate.ops import estimate, growth, stages  # ten seconds

    laptop, paper = estimate.profiles(Path("."))
    seconds = {name: run["seconds"] for name, run in runs.items()}
    rows, cpu = list(estimate.on_gpu(paper)), dict(estimate.on_cpu(laptop, paper, seconds))
    upstream, gpu = stages.expanded(Path("."), paper.model_dump())
    hours = estimate.by_stage(upstream, rows, cpu, seconds)
    space, memory = estimate.disk(rows), max(r.memory for r in rows)
    found = {"hours": hours, "plans": plans(upstream, gpu, hours), "disk": space, "memory": memory}
    night = sum(growth.hours(laptop, growth.checked("desk"), seconds).values())
    found["profiles"] = {
        "desk": {"hours": night, "on": f"{laptop.threads} cores"},
        "paper": {"hours": found["plans"][0]["hours"], "on": "1 GPU"},
    }
    text = [
        f"One {estimate.DEVICE}. **Counted** on the true models: operations (a training step as three forward passes; "
        f"sentences of {estimate.SENTENCE} tokens a side), kernels, weights; memory as what autograd keeps of a batch "
        "in bfloat16 and 16 bytes for each parameter. **Measured** on the machines above: singular values, and the "
        f"seconds that small models start from. **Assumed**: {estimate.VIT:.0%} of {estimate.PEAK / 1e12:.0f} TFLOP/s "
        f"for ViTs and {estimate.SEQ2SEQ:.0%} for translation, after [public measurements of PyTorch's layers]"
        "(https://github.com/mli/transformers-benchmarks) on an A100, forward and backward: BERT's 44 %, T5's encoder "
        f"18 %, its decoder 15 %; {estimate.LAUNCH * 1e6:.0f} µs for each kernel at least; {estimate.DECODE * 1e3:.0f} "
        "ms for a step of beam search; hours for the sentences of WMT14. **Left out**: making batches, which for crops "
        "takes 10 to 14 ms of CPU a step. Nothing of it ran on a GPU: "
        f"**take every number times or divided by {estimate.UNCERTAIN}.**",
        "",
        "| stage | what | GPU hours | GPU memory (GB) | weights (GB) |",
        "|---|---|---:|---:|---:|",
        *(f"| {r.stage} | {r.what} | {r.total:.1f} | {r.memory:.0f} | {r.weights:.1f} |" for r in rows),
        f"| **all** | | **{sum(r.total for r in rows):.0f}** | **{memory:.0f}** | "
        f"**{sum(r.weights for r in rows):.0f}** |",
        "",
        f"Without a GPU, or mostly on the CPU (vit_cut), on {laptop.threads} cores each: the measured seconds above, "
        "times the growth of steps, batch and models.",
        "",
        "| stage | CPU hours |",
        "|---|---:|",
        *(f"| {name} | {hours:.1f} |" for name, hours in cpu.items()),
        "",
        f"Disk: {sum(space.values()):.0f} GB, and 6 GB for the environment.",
        "",
        "| what | GB |",
        "|---|---:|",
        *(f"| {what} | {size:.0f} |" for what, size in space.items()),
        "",
        f"Wall time of all {len(upstream)} stages, planned on a simulated clock from the hours above: a free worker "
        "takes the ready stage with the longest chain behind it. A CPU worker has "
        f"{laptop.threads} cores; with no CPU worker the GPU's does all, one by one, as `dvc repro` would.",
        "",
        wall(found),
    ]
    return "\n".join(text), found


def main() -> None:
    if not Path("dvc.lock").exists():
        sys.exit("dvc.lock is missing: no stage has run here yet; `make repro` runs them")
    branch, before = branches(), runlog.kept()
    runs = in_order(runlog.keep(), branch)
    if not runs:
        sys.exit(f"{runlog.LOG} and {runlog.KEPT} are missing; `make repro` writes both")
    if runlog.kept() == before and OUT.exists() and "--anew" not in sys.argv:
        return
    paper, found = estimate_paper(runs)
    files.write_json(HOURS, found, digits=3)
    files.write_text(OUT, markdown(runs, branch, paper))


if __name__ == "__main__":
    main()
