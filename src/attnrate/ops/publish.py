"""`attnrate publish BRANCH`: what a branch of the pipeline found in a larger profile, to stand beside the laptop's.

reports/published/PROFILE/BRANCH gets its results, claims, tables, figures, metrics, plots, parameters and runs, the
machine and the commit, and its part of dvc.lock under another name: DVC takes a dvc.yaml or dvc.lock for a pipeline
wherever it lies. The folder is whole or not there. A branch is named by dvc.yaml's `meta: {branch: ...}`.
"""

import datetime
import shutil
from collections.abc import Iterable
from pathlib import Path

import yaml

from attnrate.core import files, params
from attnrate.core.errors import UserError
from attnrate.ops import costs, fresh, runlog, stages, verify
from attnrate.ops.profile import overlay
from attnrate.report.claims import summary
from attnrate.report.published import ROOT, SIZES, flatten, read_lock

REPORT = "report"  # the branch of what sums up the others; its tables join the branches that they are of
JUDGES = ("claims", "plots")  # stages that read all results; of their outs a branch takes its rows and files
CODE = ("src", "stages", "dvc.yaml", "params.yaml", "profiles")
FREE = ("threads", "device")  # parameters that say where a profile runs, not what


def behind(names: Iterable[str], upstream: dict[str, set[str]]) -> set[str]:
    """Stages and all that they need."""
    todo, found = list(names), set()
    while todo:
        found.add(name := todo.pop())
        todo += upstream[name] - found
    return found


def stem(name: str) -> str:
    return name.partition("@")[0]


def check_profile(named: str | None) -> tuple[str, dict]:
    """The workspace's profile and parameters."""
    p = params.read("params.yaml")
    if named and named != p.profile:
        raise UserError(f"params.yaml has the profile {p.profile}, not {named}; run that one first")
    if p.profile not in SIZES[1:]:
        raise UserError(f"the profile {p.profile} is not published, only {' and '.join(SIZES[1:])} are")
    return p.profile, p


def check_params(branch: str, profile: str, keys: set[str], p: dict) -> None:
    """The branch ran with the profile's values on the committed params.yaml."""
    path = Path("profiles") / f"{profile}.yaml"
    wanted = flatten(overlay(verify.committed_params("HEAD"), params.read(path), path))
    for key, value in flatten(p).items():
        mine = any(f"{key}.".startswith(f"{k}.") for k in keys) and key not in FREE
        if mine and value != wanted.get(key):
            raise UserError(f"{branch} ran with {key} = {value}, {path} means {wanted.get(key)}: it is another profile")


def commit() -> str:
    """The commit that has the code of this tree."""
    edited = [line[3:] for line in verify.git("status", "--porcelain", "--", *CODE).splitlines()]
    if edited := [name for name in edited if name != "params.yaml"]:  # which has the profile
        raise UserError(f"{edited[0]} is not committed; commit the code first, so that the results can name it")
    return verify.git("rev-parse", "HEAD").strip()


def check_current(branch: str, needed: set[str], stale: set[str]) -> None:
    if own := sorted(needed & stale):
        names = " ".join(sorted({stem(n) for n in own}))
        raise UserError(f"{branch} is not up to date: `dvc repro {names}` first ({len(own)} stages)")


def nested(keys: set[str], p: dict) -> dict:
    """The parameters of some keys and groups, as params.yaml has them."""
    found = {}
    for key, value in flatten(p).items():
        if any(f"{key}.".startswith(f"{k}.") for k in keys):
            *groups, last = key.split(".")
            owner = found
            for group in groups:
                owner = owner.setdefault(group, {})
            owner[last] = value
    return found


def copy_outs(names: Iterable[str], lock: dict, to: Path) -> None:
    """Results and tables as they are; of a figure the smaller of its two files. Nothing of data/."""
    paths = [Path(out["path"]) for name in names for out in lock[name].get("outs", [])]
    for path in (p for p in paths if p.parts[:2] in (("reports", "results"), ("reports", "tables"))):
        copy(path, to / path.relative_to("reports"))
    figures = {p.with_suffix("") for p in paths if p.parts[:2] == ("reports", "figures")}
    for both in figures:
        path = min((p for p in paths if p.with_suffix("") == both), key=lambda p: p.stat().st_size)
        copy(path, to / path.relative_to("reports"))


def copy(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    (shutil.copytree if path.is_dir() else shutil.copyfile)(path, to)


def runs_of(names: Iterable[str]) -> dict:
    """As reports/runs.json, of the stages whose logged run made the outs that are here."""
    made, known = runlog.digests(), runlog.last()
    return runlog.packed({n: known[n] for n in names if n in known and known[n]["outs"] == made[n]})


def write(folder: Path, branch: str, names: list[str], joined: list[str], p: dict, lock: dict, about: dict) -> None:
    """A branch's folder, whole or not there."""
    parts = [part for stage, part in summary.PARTS.items() if stage in map(stem, names)]  # of the metrics
    begin = {part.__name__ for part in parts}  # rates, linear, vit, ...: plots go by it
    keys = {key for n in names for key in lock[n].get("params", {}).get("params.yaml", {})}
    claims = [row for row in files.read_json("reports/claims.json") if of_branch(row, names)]
    with files.atomic(folder) as draft:
        draft.mkdir()
        copy_outs([*names, *joined], lock, draft)
        for path in Path("reports/plots").glob("*.csv"):
            if path.stem.partition("_")[0] in begin:
                copy(path, draft / "plots" / path.name)
        metrics = {k: v for part in parts for k, v in part(draft / "results").items()}
        files.write_json(draft / "metrics.json", metrics, digits=4)
        files.write_json(draft / "claims.json", claims)
        files.write_json(draft / "runs.json", runs_of(names))
        files.write_json(draft / "about.json", about | {"branch": branch})
        files.write_text(draft / "params.yaml", yaml.safe_dump(nested(keys, p), sort_keys=False))
        own = {"schema": "2.0", "stages": {n: lock[n] for n in names}}
        files.write_text(draft / "lock.yaml", yaml.safe_dump(own, sort_keys=False))


def of_branch(row: dict, names: Iterable[str]) -> bool:
    """Whether a claim rests on these stages: its command names them."""
    return set(row["command"].removeprefix("dvc repro ").split()) <= {stem(n) for n in names}


def publish(which: str, named: str | None = None) -> list[Path]:
    """Publish one branch, or all; the folders written. Nothing is written if any of them is refused."""
    profile, p = check_profile(named)
    branch_of, known = costs.branches(), {}
    for branch in branch_of.values():
        known |= {costs.slug(branch): branch} if branch != REPORT else {}
    if which != "all" and which not in known:
        raise UserError(f"{which} is no branch: all, {', '.join(known)}")
    about = {"profile": profile, "commit": commit(), "date": datetime.date.today().isoformat()}
    upstream, _ = stages.plan(Path("."), [], profile)
    own = {s: [n for n in upstream if branch_of[stem(n)] == b] for s, b in known.items() if which in ("all", s)}
    lock = read_lock(Path("dvc.lock"))
    tables = [n for n in upstream if branch_of[stem(n)] == REPORT and "reports/tables/" in str(lock.get(n))]
    every = behind([*tables, *(n for names in own.values() for n in names)], upstream)
    stale = stages.out_of_date(Path("."), [*every, *JUDGES], allow_missing=True)
    for s, names in own.items():
        check_current(s, behind(names, upstream), stale)
        check_params(s, profile, {key for n in names for key in lock[n].get("params", {}).get("params.yaml", {})}, p)
    if old := [name for name in JUDGES if name in stale]:
        raise UserError(f"the results are not judged yet: `dvc repro --single-item {' '.join(old)}` first")
    for s, names in own.items():
        joined = [n for n in tables if upstream[n] & {*names} and not behind([n], upstream) & stale]
        write(ROOT / profile / s, known[s], names, joined, p, lock, about)
    fresh.refresh()
    return [ROOT / profile / s for s in own]


def size(folder: Path) -> float:
    """MB."""
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 1e6


def main(branch: str, profile: str | None = None) -> str:
    try:
        folders = publish(branch, profile)
    except FileNotFoundError as e:
        raise UserError(f"{e.filename} is missing; run this in the repository, after a run of the profile") from None
    except OSError as e:
        raise UserError(f"{e.filename}: {e.strerror}; no branch is half-written") from None
    lines = [f"{folder}: {size(folder):.1f} MB" for folder in folders]
    top = folders[0].parent
    return "\n".join([*lines, f"{top}: {size(top):.1f} MB in all; `git add {ROOT}`, then commit"])
