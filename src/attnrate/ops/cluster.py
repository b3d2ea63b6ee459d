"""`python -m attnrate.ops.cluster [stage ...]`: the out-of-date stages of the pipeline, over many Dask workers.

A worker runs a stage by `dvc --wait-for-lock repro --single-item`: DVC itself decides, runs and records, so that the
outs and dvc.lock are those of `dvc repro` by construction. DVC locks the repository except while a command runs, and
stages are started in the order of the DAG, so that two of them never touch the same file.
"""

import argparse
import logging
import math
import os
import sys
import time
from collections import Counter
from concurrent.futures import CancelledError
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from distributed import Client, Future, wait

from attnrate.core import params
from attnrate.core.errors import UserError
from attnrate.ops import costs, gpu, runlog, schedule
from attnrate.ops.runner import LEFT, LOGS, Ended, Job, run_stage
from attnrate.ops.stages import out_of_date, plan
from attnrate.ops.workers import Kind, Local, in_order, layout, spread

RETRIES = 2  # of a stage that a signal ended, such as the kernel's for want of memory


@dataclass
class Run:
    """One call of this program, with stages by name."""

    client: Client
    root: Path
    upstream: dict[str, set[str]]
    gpu: set[str]  # the stages that want one
    hours: dict[str, float]  # what each stage takes, about
    options: tuple[str, ...] = ()  # of dvc repro
    patience: float = 60  # seconds that a stage waits for a worker that can run it
    devices: int | None = 1  # GPUs of a stage that wants one; None: all of its worker's
    live: bool = False
    first: dict[str, float] = field(init=False)
    running: dict[Future, str] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    ran: int = 0
    failed: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)  # those that started
    tries: Counter = field(default_factory=Counter)
    waiting: dict[str, float] = field(default_factory=dict)  # resource that no worker offers: since when

    def __post_init__(self):
        self.first = schedule.chains(self.upstream, self.hours)

    def need(self, name: str) -> str:
        return "GPU" if name in self.gpu else "CPU"

    def heard(self, event: tuple[float, dict]) -> None:
        """A stage has started, or says something."""
        name, line = event[1]["stage"], event[1].get("line")
        if line is not None:
            print(f"[{name}] {line}", flush=True)
            return
        again = " again" if name in self.seen else ""
        self.seen.add(name)
        print(f"{name}: started{again} ({event[1]['where']}; {LOGS / name}.log)", flush=True)

    def submit(self) -> None:
        """Start what is ready and out of date; what is ready and up to date may make more ready."""
        taken = {*self.done, *self.failed, *self.running.values()}
        while ready := [n for n, up in self.upstream.items() if n not in taken and up <= self.done]:
            changed = out_of_date(self.root, ready, "--allow-missing" in self.options)
            for name in ready:
                taken.add(name)
                if name in changed:
                    self.send(name)
                else:
                    self.done.add(name)

    def send(self, name: str) -> None:
        self.tries[name] += 1
        future = self.client.submit(
            run_stage,
            Job(name, self.root, self.options, self.devices if name in self.gpu else None, self.live),
            key=f"{name}-{time.time_ns()}",
            pure=False,
            resources={self.need(name): 1},
            priority=self.first[name],
        )
        self.running[future] = name

    def finish(self, future: Future) -> None:
        name = self.running.pop(future)
        try:
            ended = future.result()
        except Exception as e:  # of Dask or of the worker: too many lost workers, no library there
            ended = Ended(1, f"{type(e).__name__}: {e}", "no result", 0.0)
        self.tries[name] -= ended.again == LEFT  # a lifetime that is over is no failure
        if not ended.code:
            print(f"{name}: done in {ended.seconds:.1f} s ({ended.where})", flush=True)
            self.done.add(name)
            self.ran += 1
        elif ended.again and self.tries[name] <= RETRIES:
            print(f"{name}: ended by {ended.again} after {ended.seconds:.1f} s ({ended.where}); again", flush=True)
            self.send(name)
        else:
            print(ended.tail, flush=True)
            print(f"{name}: failed after {ended.seconds:.1f} s ({ended.where})", flush=True)
            self.failed.append(name)

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
        self.client.subscribe_topic(str(self.root), self.heard)
        self.client.run_on_scheduler(in_order)
        self.submit()
        while self.running:
            self.check_resources()
            self.client.run_on_scheduler(spread)
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


def likely(names: list[str], profile: str) -> dict[str, float]:
    """Hours of each stage, for the order alone: as estimated for the paper profile, else those of the last run."""
    if profile == "paper":
        return schedule.known(names, costs.estimated().get("hours", {}))
    return schedule.known(names, {name: run["seconds"] / 3600 for name, run in runlog.kept().items()})


def connect(stack: ExitStack, scheduler: str | None, kinds: list[Kind]) -> Client:
    if scheduler:
        try:
            return stack.enter_context(Client(scheduler, timeout=10))
        except OSError as e:
            raise UserError(f"--scheduler {scheduler}: no Dask scheduler answers ({e})") from None
    return stack.enter_context(Client(stack.enter_context(Local(kinds))))


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
        help="worker processes on this machine (default: one for each GPU and some for stages without, "
        "or cores // threads)",
    )
    parser.add_argument("--allow-missing", action="store_true", help="as in dvc repro")
    parser.add_argument("--live", action="store_true", help="show what the stages say, line by line")
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
        upstream, wanted = plan(root, args.stages, p.profile)
        if wanted and not args.scheduler and not p.launch.startswith("srun"):  # both bring GPUs of other machines
            gpu.require(p.device)
        devices = [] if p.device == "cpu" or args.scheduler else gpu.visible()
        kinds = layout(args.workers, devices, os.cpu_count(), p.threads, p.launch, bool(wanted))
        with ExitStack() as stack:
            client = connect(stack, args.scheduler, kinds)
            run = Run(
                client,
                root,
                upstream,
                wanted,
                likely(list(upstream), p.profile),
                options=("--allow-missing",) if args.allow_missing else (),
                patience=args.patience,
                devices=1 if p.launch.endswith("python") else None,
                live=args.live,
            )
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
    main()
