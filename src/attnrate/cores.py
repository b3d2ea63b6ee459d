"""What a stage does with the cores of a machine: trainings that share nothing run side by side, one thread each.

A training gives the same bytes on any number of cores. Small tensors gain little from a second thread, and two threads
wait for each other at every operation, for long where the machine has other work.
"""

import ctypes
import itertools
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partialmethod
from typing import TypeVar

from tqdm import tqdm

T, R = TypeVar("T"), TypeVar("R")

ENOUGH = 12  # models of a stack that one thread works on: more no longer gain, and leave the caches

_work, _items = None, ()  # of the processes that are forked next
most_at_once = 1  # for the run log


def available() -> int:
    """Cores that this process may use; ATTNRATE_CORES is for those who share a machine."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return int(os.environ.get("ATTNRATE_CORES", own))


def set_threads(threads: int) -> None:
    """PyTorch with so many CPU threads, the same bits at every run."""
    import torch  # two seconds that figures need not pay

    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # with NaN, for code that reads before it writes


def in_turn(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """One after the other, for GPUs and for the processes of `accelerate launch`."""
    return [work(item) for item in items]


def side_by_side(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """[work(item) for item in items], one thread each, as many at once as there are cores.

    A result must be plain: numbers, tables, arrays. Elsewhere than on Linux one runs after the other: a fork there may
    not survive a library's threads.
    """
    global _work, _items, most_at_once
    if len(items) < 2:  # alone, with as many threads as the stage has
        return in_turn(work, items)
    if "torch" in sys.modules:  # here too: a fork does not take a pool of threads along
        set_threads(1)
    at_once = min(available(), len(items))
    if at_once < 2 or not sys.platform.startswith("linux"):
        return in_turn(work, items)
    _work, _items, most_at_once, found = work, items, max(most_at_once, at_once), {}
    context = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(at_once, context, _begin, (context.Value("i", 0), os.getpid()))
    try:
        for done in as_completed([pool.submit(_one, i) for i in range(len(items))]):
            i, result = done.result()
            found[i] = result
    except BrokenProcessPool:
        raise MemoryError("one of its processes was killed") from None
    finally:
        if len(found) < len(items):  # nobody waits for the others
            for process in multiprocessing.active_children():
                process.kill()
        pool.shutdown()
    return [found[i] for i in range(len(items))]


def for_device(device) -> Callable:
    """How to go through what a stage measures: side by side on a CPU, in turn on a GPU."""
    return side_by_side if device.type == "cpu" else in_turn


def _begin(begun, parent: int) -> None:
    """A process dies with its parent, which alone hears Ctrl-C, and has a line of the terminal for its bar."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with begun.get_lock():
        line, begun.value = begun.value, begun.value + 1
    tqdm.__init__ = partialmethod(tqdm.__init__, position=line, leave=False)


def _one(i: int):
    return i, _work(_items[i])


def stacks(cells: Sequence[T], most: int = ENOUGH) -> list[Sequence[T]]:
    """The cells of a stack in an even number of parts of about the same size, whatever the machine."""
    count = -(-len(cells) // most)
    count = min(len(cells), count + count % 2)
    cuts = [round(i * len(cells) / count) for i in range(count + 1)]
    return [cells[a:b] for a, b in itertools.pairwise(cuts)]
