"""python leash.py COMMAND ...: run it, and kill it with all its descendants when standard input ends.

The holder of the other end is a Dask worker: however it dies, the kernel closes the pipe, and no stage outlives it.
Ranks of torchrun have sessions of their own, so that the kill of a process group would miss them.
"""

import os
import subprocess
import sys
import threading
from contextlib import suppress

import psutil


def watch() -> None:
    os.read(0, 1)  # returns when the other end is closed: nothing is ever written
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            process.kill()
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=watch, daemon=True).start()
    code = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL).returncode
    sys.exit(128 - code if code < 0 else code)  # of a signal, as a shell would tell it
