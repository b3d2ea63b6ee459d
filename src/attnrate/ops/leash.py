"""python leash.py COMMAND ...: run it, and end it with all its descendants when standard input ends.

The holder of the other end is a Dask worker: however it dies, the kernel closes the pipe, and no stage outlives it.
Ranks of torchrun have sessions of their own, so that the kill of a process group would miss them.
"""

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress

import psutil

PATIENCE = 5  # seconds from SIGTERM, which srun passes on to another machine, to SIGKILL, which it cannot


def lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def below(processes: list[psutil.Process]) -> list[psutil.Process]:
    found = {}
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            found |= dict.fromkeys(process.children(recursive=True))
    return list(found)


def watch(leaving: threading.Event) -> None:
    os.read(0, 1)  # returns when the other end is closed: nothing is ever written
    leaving.set()
    found = below([psutil.Process()])
    for process in found:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    end = time.monotonic() + PATIENCE
    while (alive := [process for process in found if lives(process)]) and time.monotonic() < end:
        time.sleep(0.05)
    for process in [*alive, *below(alive)]:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    os._exit(1)


if __name__ == "__main__":
    leaving = threading.Event()
    watcher = threading.Thread(target=watch, args=(leaving,), daemon=True)
    watcher.start()
    code = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL).returncode
    if leaving.is_set():
        watcher.join()  # others may still run
    sys.exit(128 - code if code < 0 else code)  # of a signal, as a shell would tell it
