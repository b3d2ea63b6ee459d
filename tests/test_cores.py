"""Trainings side by side: the same results as one after the other, and nobody left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from attnrate import cores
from attnrate.core.errors import UserError
from tests.conftest import ROOT


@pytest.fixture(autouse=True)
def as_before():
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    filled = torch.utils.deterministic.fill_uninitialized_memory
    yield
    torch.set_num_threads(before[0])
    torch.use_deterministic_algorithms(before[1])
    torch.utils.deterministic.fill_uninitialized_memory = filled


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setenv("ATTNRATE_CORES", "2")


def test_threads_and_determinism_are_set():
    cores.set_threads(3)
    assert torch.get_num_threads() == 3 and torch.are_deterministic_algorithms_enabled()


def wait_for(name: str) -> None:
    """Until another process has made this file."""
    end = time.monotonic() + 60
    while not Path(name).exists():
        assert time.monotonic() < end, f"nobody makes {name}"
        time.sleep(0.01)


def test_results_come_in_the_order_of_the_items_whatever_ends_first(two_cores):
    def work(item):  # a closure: nothing of it is sent
        wait_for("last") if item == 0 else None
        Path("last").touch() if item == 4 else None
        return item, os.getpid(), torch.get_num_threads(), np.full(2, item)

    found = cores.side_by_side(work, range(5))
    assert [item for item, *_ in found] == list(range(5))
    assert len({pid for _, pid, *_ in found}) == 2 and os.getpid() not in {pid for _, pid, *_ in found}
    assert {threads for _, _, threads, _ in found} == {1}
    assert (found[4][3] == 4).all()


def test_one_core_gives_the_same_in_this_process(monkeypatch):
    monkeypatch.setenv("ATTNRATE_CORES", "1")
    found = cores.side_by_side(lambda item: (item**2, os.getpid()), range(3))
    assert found == [(i**2, os.getpid()) for i in range(3)]


def test_a_training_alone_keeps_the_threads_of_its_stage(two_cores):
    cores.set_threads(2)
    assert cores.side_by_side(lambda item: torch.get_num_threads(), [0]) == [2]


def test_an_error_is_told_at_once_and_ends_the_others(two_cores):
    def work(item):
        if item:
            wait_for("begun")
            raise UserError("the loss is not finite")
        Path("begun").write_text(str(os.getpid()))
        time.sleep(60)
        Path("ended by itself").touch()

    with pytest.raises(UserError, match="not finite"):
        cores.side_by_side(work, range(2))
    assert gone(int(Path("begun").read_text())) and not Path("ended by itself").exists()


def test_a_process_that_is_killed_is_no_silence(two_cores):
    with pytest.raises(MemoryError, match="killed"):
        cores.side_by_side(lambda item: os.kill(os.getpid(), signal.SIGKILL), range(2))


ENDLESS = """
import os, signal, sys, time
from attnrate import cores
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
def work(item):
    os.write(1, b"%d\\n" % os.getpid())  # in one piece, also where Python is unbuffered
    time.sleep(600)
cores.side_by_side(work, range(2))
"""


def gone(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere nothing is forked")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_processes_die_with_their_parent(number):
    env = os.environ | {"ATTNRATE_CORES": "2", "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", ENDLESS]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        children = [int(process.stdout.readline()) for _ in range(2)]
        process.send_signal(number)
    for _ in range(300):
        if all(map(gone, children)):
            break
        time.sleep(0.1)
    assert all(map(gone, children))


@pytest.mark.parametrize("number", [1, 2, 3, 5, 11, 12, 13, 25, 72, 100])
def test_stacks_are_about_equal_and_keep_every_cell(number):
    parts = cores.stacks(list(range(number)))
    assert [cell for part in parts for cell in part] == list(range(number))
    assert max(map(len, parts)) <= cores.ENOUGH and max(map(len, parts)) - min(map(len, parts)) <= 1
    assert len(parts) % 2 == 0 or number == 1
