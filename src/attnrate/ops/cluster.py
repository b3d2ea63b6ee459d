"""`python -m attnrate.ops.cluster [stage ...]`: the out-of-date stages of the pipeline, over many Dask workers.

A worker runs a stage by `dvc --wait-for-lock repro --single-item`: DVC itself decides, runs and records, so that the
outs and dvc.lock are those of `dvc repro` by construction. DVC locks the repository except while a command runs, and
stages are started in the order of the DAG, so that two of them never touch the same file.
"""

import argparse
import json
import logging
import math
import os
import subprocess
import sys
import time
from concurrent.futures import CancelledError
from contextlib import ExitStack
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path

import dask
from distributed import Client, Future, LocalCluster, get_worker, wait
from dvc.exceptions import DvcException
from dvc.repo import Repo, lock_repo

from attnrate.core import params
from attnrate.core.errors import UserError
from attnrate.ops import leash

TAIL = 30  # lines of a failed stage that are shown


# On a worker ----------------------------------------------------------------------------------------------------


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


def environment() -> dict[str, str]:
    """The worker's environment without what Dask's nanny adds to it, with this Python's programs first."""
    added = {*dask.config.get("distributed.nanny.pre-spawn-environ"), "PYTHONHASHSEED"}
    kept = {k: v for k, v in os.environ.items() if k not in added}
    return kept | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', os.defpath)}"}


def run_stage(name: str, root: Path, options: list[str]) -> tuple[int, str, str, float]:
    """Exit code and output of DVC, the worker's address and the seconds."""
    worker, start = get_worker(), time.perf_counter()
    where = worker.address.rpartition("/")[2]
    if not (root / "dvc.yaml").exists():
        return 1, f"{root} is not there; the tree must be shared, under the same path on every machine", where, 0.0
    worker.log_event(str(root), {"stage": name, "where": where})
    command = ["--wait-for-lock", "repro", "--single-item", *options, name]
    forget(root, " ".join(command))
    process = subprocess.Popen(
        [sys.executable, leash.__file__, sys.executable, "-m", "dvc", *command],
        cwd=root,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    output = process.stdout.read()  # standard input stays open: it is the leash
    return process.wait(), output, where, time.perf_counter() - start


# On the machine that was asked -----------------------------------------------------------------------------------


def heights(upstream: dict[str, set[str]]) -> dict[str, int]:
    """How many stages follow one after the other on each stage: the longest chain goes first."""
    found = dict.fromkeys(upstream, 0)
    for name in reversed(list(TopologicalSorter(upstream).static_order())):
        for up in upstream[name]:
            found[up] = max(found[up], found[name] + 1)
    return found


@dataclass
class Run:
    """One call of this program, with stages by name."""

    client: Client
    root: Path
    upstream: dict[str, set[str]]
    gpu: set[str]  # the stages that want one
    allow_missing: bool
    patience: float  # seconds that a stage waits for a worker that can run it
    heights: dict[str, int] = field(init=False)
    running: dict[Future, str] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    ran: int = 0
    failed: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)  # those that started
    waiting: dict[str, float] = field(default_factory=dict)  # resource that no worker offers: since when

    def __post_init__(self):
        self.heights = heights(self.upstream)

    def need(self, name: str) -> str:
        return "GPU" if name in self.gpu else "CPU"

    def started(self, event: tuple[float, dict]) -> None:
        name, where = event[1]["stage"], event[1]["where"]
        again = " again, its worker was lost" if name in self.seen else ""
        self.seen.add(name)
        print(f"{name}: started{again} ({where})", flush=True)

    def submit(self) -> None:
        """Start what is ready and out of date; what is ready and up to date may make more ready."""
        taken = {*self.done, *self.failed, *self.running.values()}
        while ready := [n for n, up in self.upstream.items() if n not in taken and up <= self.done]:
            changed = out_of_date(self.root, ready, self.allow_missing)
            for name in ready:
                taken.add(name)
                if name not in changed:
                    self.done.add(name)
                    continue
                options = ["--allow-missing"] if self.allow_missing else []
                future = self.client.submit(
                    run_stage,
                    name,
                    self.root,
                    options,
                    key=f"{name}-{time.time_ns()}",
                    pure=False,
                    resources={self.need(name): 1},
                    priority=self.heights[name],
                )
                self.running[future] = name

    def finish(self, future: Future) -> None:
        name = self.running.pop(future)
        try:
            code, output, where, seconds = future.result()
        except Exception as e:  # of Dask or of the worker: too many lost workers, no library there
            code, output, where, seconds = 1, f"{type(e).__name__}: {e}", "no result", 0.0
        if code:
            print("\n".join(output.splitlines()[-TAIL:]), flush=True)
            print(f"{name}: failed after {seconds:.1f} s ({where})", flush=True)
            self.failed.append(name)
        else:
            print(f"{name}: done in {seconds:.1f} s ({where})", flush=True)
            self.done.add(name)
            self.ran += 1

    def check_resources(self) -> None:
        """A stage fails if for a while no worker has offered what it needs."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        offered = {r for w in workers for r in w["resources"]}
        needed = {self.need(name) for name in self.running.values()}
        self.waiting = {r: self.waiting.get(r, time.monotonic()) for r in needed - offered}
        for future, name in list(self.running.items()):
            resource = self.need(name)
            if time.monotonic() - self.waiting.get(resource, math.inf) >= self.patience:
                future.cancel()
                del self.running[future]
                self.failed.append(name)
                print(
                    f"{name}: needs {resource}, which none of {len(workers)} workers offered for {self.patience:g} s; "
                    f"start one with `dask worker ADDRESS --nthreads 1 --resources {resource}=1` (docs/cluster.md)",
                    flush=True,
                )

    def go(self) -> None:
        self.client.subscribe_topic(str(self.root), self.started)
        self.submit()
        while self.running:
            self.check_resources()
            try:
                ended = wait(list(self.running), timeout=5, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                continue
            except CancelledError:
                raise UserError("the scheduler is gone; start it again, and the same command goes on") from None
            for future in ended:
                self.finish(future)
            self.submit()
        self.client.unsubscribe_topic(str(self.root))


def out_of_date(root: Path, names: list[str], allow_missing: bool) -> set[str]:
    repo = Repo(str(root), _wait_for_lock=True)
    with repo, lock_repo(repo):
        stages = {s.addressing: s for s in repo.index.stages}
        graph = repo.index.graph
        return {n for n in names if stages[n].changed(allow_missing, upstream=list(graph.successors(stages[n])))}


def plan(root: Path, targets: list[str], profile: str) -> tuple[dict[str, set[str]], set[str]]:
    """The targets (or all stages) and what they need, each with its direct upstream; those whose `meta` wants a GPU.

    Only the paper profile's models are large enough for one.
    """
    repo = Repo(str(root), _wait_for_lock=True)
    with repo, lock_repo(repo):
        try:
            todo = [s for t in targets for s in repo.stage.collect(t)] if targets else list(repo.index.stages)
        except DvcException as e:
            raise UserError(str(e)) from None
        found, gpu = {}, set()
        while todo:
            stage = todo.pop(0)
            if stage.addressing not in found:
                upstream = list(repo.index.graph.successors(stage))
                found[stage.addressing] = {s.addressing for s in upstream}
                todo += upstream
                if profile == "paper" and (stage.meta or {}).get("gpu"):
                    gpu.add(stage.addressing)
    return found, gpu


def connect(stack: ExitStack, scheduler: str | None, workers: int) -> Client:
    if scheduler:
        try:
            return stack.enter_context(Client(scheduler, timeout=10))
        except OSError as e:
            raise UserError(f"--scheduler {scheduler}: no Dask scheduler answers ({e})") from None
    cluster = stack.enter_context(
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            memory_limit=0,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
            resources={"CPU": 1, "GPU": 1},  # what there is, as for `dvc repro`
        )
    )
    return stack.enter_context(Client(cluster))


def count(text: str) -> int:
    if (value := int(text)) < 1:
        raise ValueError
    return value


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m attnrate.ops.cluster", description=__doc__)
    parser.add_argument("stages", nargs="*", help="stages to run with what they need; all, if none is named")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--scheduler", metavar="ADDRESS", help="a Dask scheduler; without it, workers on this machine")
    where.add_argument(
        "--workers",
        type=count,
        help="worker processes on this machine (default: cores // threads; 1 in the paper profile)",
    )
    parser.add_argument("--allow-missing", action="store_true", help="as in dvc repro")
    parser.add_argument(
        "--patience",
        type=float,
        default=60,
        metavar="SECONDS",
        help="how long to wait for a worker that offers what a stage needs (default: 60)",
    )
    args = parser.parse_args(argv)
    root, start = Path.cwd(), time.perf_counter()
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # what matters is said here
    try:
        p = params.read(root / "params.yaml")
        upstream, gpu = plan(root, args.stages, p.profile)
        with ExitStack() as stack:
            # in the paper profile all workers would share the first GPU
            usual = 1 if p.profile == "paper" else max(1, os.cpu_count() // p.threads)
            client = connect(stack, args.scheduler, args.workers or usual)
            run = Run(client, root, upstream, gpu, args.allow_missing, args.patience)
            run.go()
    except UserError as e:
        sys.exit(f"cluster: {e}")
    except KeyboardInterrupt:
        sys.exit("\ncluster: interrupted; what was recorded stays, and the same command goes on from there")
    seconds = time.perf_counter() - start
    if run.failed:
        skipped = sorted(set(upstream) - run.done - set(run.failed))
        after = f"; not run because they depend on it: {', '.join(skipped)}" if skipped else ""
        sys.exit(f"cluster: {', '.join(run.failed)} failed, the reason stands above{after}")
    print(f"cluster: {run.ran} stages run, {len(upstream) - run.ran} up to date, {seconds:.0f} s")


if __name__ == "__main__":
    from attnrate.ops.cluster import main  # under its own name, so that workers import what they are sent

    main()
