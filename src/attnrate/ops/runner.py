"""A stage on a worker: `dvc --wait-for-lock repro --single-item`, its log while it runs, and how it ended."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import dask
from distributed import Worker, get_worker
from distributed.core import Status
from dvc.repo import Repo, lock_repo

from attnrate.core import files
from attnrate.ops import leash

LOGS = files.SCRATCH / "logs"
LEFT = "its worker left"  # such as at the end of its lifetime
TAIL = 30  # lines of a failed stage that are shown
CODES = re.compile(r"(?:exited with|exitcode\s*:) (-?\d+)")  # DVC of a command, torch.distributed of a rank
STOPPED = re.compile(r": interrupted, no")  # a stage of itself


@dataclass(frozen=True)
class Job:
    """What a worker is sent."""

    stage: str
    root: Path
    options: tuple[str, ...] = ()
    devices: int | None = None  # of the worker's GPUs, the first ones; None: all
    live: bool = False  # send every line to who asked


@dataclass(frozen=True)
class Ended:
    code: int
    tail: str
    where: str
    seconds: float
    again: str = ""  # why another try may go better: a signal, a worker that leaves


def forget(root: Path, command: str) -> None:
    """Remove what a lost worker's `command` left in DVC's table of files in use.

    DVC drops an entry when no process has its number, but here another process, or another machine's, may have it.
    """
    repo = Repo(str(root), _wait_for_lock=True)
    path = Path(repo.tmp_dir) / "rwlock"
    with lock_repo(repo):
        if path.exists():
            table = json.loads(path.read_text(encoding="utf-8"))
            write = {k: v for k, v in table.get("write", {}).items() if not v["cmd"].endswith(command)}
            read = {k: [i for i in v if not i["cmd"].endswith(command)] for k, v in table.get("read", {}).items()}
            path.write_text(json.dumps({"write": write, "read": {k: v for k, v in read.items() if v}}), "utf-8")


def environment(devices: int | None = None) -> dict[str, str]:
    """The worker's environment without what Dask's nanny adds to it, with this Python's programs first.

    dask-cuda names the other GPUs after a worker's own, so that of a list the first ones are the stage's.
    """
    added = {*dask.config.get("distributed.nanny.pre-spawn-environ"), "PYTHONHASHSEED"}
    kept = {k: v for k, v in os.environ.items() if k not in added}
    if devices is not None and "CUDA_VISIBLE_DEVICES" in kept:
        kept["CUDA_VISIBLE_DEVICES"] = ",".join(kept["CUDA_VISIBLE_DEVICES"].split(",")[:devices])
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', os.defpath)}"
    return kept | {"PATH": path, "ATTNRATE_WORKER": "1"}  # stages/launcher.py asks for no GPU there


def ended_by(code: int, text: str) -> str:
    """The signal that ended a stage, by its code and the lines it left; nothing if it failed by itself."""
    for found in (code, *map(int, CODES.findall(text))):
        number = -found if found < 0 else found - 128  # as Python and as a shell tell it
        if number in signal.valid_signals():
            return signal.Signals(number).name
    return signal.SIGTERM.name if STOPPED.search(text) else ""


def _watch(worker: Worker, process: subprocess.Popen, left: threading.Event) -> None:
    """Let go of the leash as soon as the worker leaves: another one may get the stage at any moment."""
    while process.poll() is None:
        if worker.status not in (Status.running, Status.paused, Status.init):
            left.set()
            process.stdin.close()
            return
        time.sleep(0.2)


def run_stage(job: Job) -> Ended:
    worker, start = get_worker(), time.perf_counter()
    where = worker.address.rpartition("/")[2]
    if not (job.root / "dvc.yaml").exists():
        text = f"{job.root} is not there; the tree must be shared, under the same path on every machine"
        return Ended(1, text, where, 0.0)
    worker.log_event(str(job.root), {"stage": job.stage, "where": where})
    command = ["--wait-for-lock", "repro", "--single-item", *job.options, job.stage]
    forget(job.root, " ".join(command))
    process = subprocess.Popen(
        [sys.executable, leash.__file__, sys.executable, "-m", "dvc", *command],
        cwd=job.root,
        env=environment(job.devices) | {"PYTHONUNBUFFERED": "1"},
        stdin=subprocess.PIPE,  # stays open: it is the leash
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    left, tail = threading.Event(), deque(maxlen=TAIL)
    threading.Thread(target=_watch, args=(worker, process, left), daemon=True).start()
    log = job.root / LOGS / f"{job.stage}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8", buffering=1) as f:
        for line in process.stdout:
            f.write(line)
            tail.append(line.rstrip("\n"))
            if job.live:
                worker.log_event(str(job.root), {"stage": job.stage, "line": tail[-1]})
    code, text = process.wait(), "\n".join(tail)
    again = LEFT if left.is_set() else ended_by(code, text) if code else ""
    return Ended(code, text, where, time.perf_counter() - start, again)
