"""First import of every stage: this tree's library and environment, stops and errors in one line, the run log.

No stage depends on this file, since nothing in it can change a result, but for the one line that says so.
"""

import atexit
import ctypes
import gc
import importlib.util
import logging
import os
import platform
import signal
import sys
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAGE = os.environ.get("DVC_STAGE", Path(sys.argv[0]).stem)
RANK = os.environ.get("RANK")  # of the processes of `accelerate launch` or torchrun
START = time.perf_counter()

# The tree a stage stands in is the one it runs: DVC also runs experiments in copies of the repository.
sys.path.insert(0, str(ROOT / "src"))
# The line that results rest on: with one thread NumPy's matrices have the same bits on any number of cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

if importlib.util.find_spec("yaml") is None:
    python = ROOT / ".venv" / "bin" / "python"
    if python.exists() and Path(sys.prefix) != ROOT / ".venv":
        os.execv(python, [str(python), *sys.argv])
    sys.exit("attnrate's environment is missing: run `make env`, then `source .venv/bin/activate`")


def begun(frame) -> bool:
    """Whether stage.run is on the stack: imports, which a KeyboardInterrupt would crash, are over."""
    while frame and not (frame.f_code.co_name == "run" and frame.f_code.co_filename.endswith("core/stage.py")):
        frame = frame.f_back
    return frame is not None


def stop(number, frame):
    if begun(frame):  # a scheduler's stop is a Ctrl-C
        raise KeyboardInterrupt
    os.write(2, f"{STAGE}: interrupted, nothing was begun; `dvc repro` starts this stage again\n".encode())
    os._exit(128 + number)


def line(e: BaseException) -> str | None:
    """What the user should know of an error; None of one that is ours."""
    from attnrate.core.errors import UserError

    if isinstance(e, UserError):
        return str(e)
    if isinstance(e, FileNotFoundError):
        return f"{e.filename} is missing; `dvc repro {STAGE}` makes it, `dvc checkout` restores it"
    if isinstance(e, OSError):
        where = f"{e.filename}: " if e.filename else ""
        return f"{where}{e.strerror or e}; no out is half-written: put that right, then `dvc repro`"
    if isinstance(e, MemoryError):
        return f"out of memory ({e}); make its batches, models or evaluation sets smaller in params.yaml"
    if isinstance(e, KeyboardInterrupt):
        return f"interrupted, no out is half-written; `dvc repro` {str(e) or 'starts this stage again'}"
    return None


def failed(kind, e, trace):
    atexit.unregister(ended)
    print(f"{STAGE}: {text}" if (text := line(e)) else "".join(traceback.format_exception(e)), file=sys.stderr)
    if isinstance(e, KeyboardInterrupt):  # for which Python would send itself the signal again
        sys.stderr.flush()
        os._exit(1)


def ended():
    from attnrate.ops import runlog

    if RANK in (None, "0"):
        runlog.append(STAGE, time.perf_counter() - START)


def refuse():
    """With device: cuda no stage begins without a GPU, or a day of stages for CPUs would come before the first refusal.

    On a worker of a cluster they may: its GPUs are others' (ops/runner.py).
    """
    if STAGE == "validate" or "ATTNRATE_WORKER" in os.environ:
        return
    from attnrate.core import params

    if params.read("params.yaml").get("device") == "cuda":
        from attnrate.ops import gpu  # two seconds, for PyTorch

        gpu.require("cuda")


class Live(logging.Handler):
    """What a large training tells of its steps goes to a tracker; one that fails is told, and left."""

    follower = None

    def emit(self, record):
        try:
            from attnrate.ops import live

            self.follower = self.follower or live.Follower(STAGE)
            self.follower.follow(record.getMessage(), record.step, record.steps, record.news)
        except Exception as e:  # whatever a tracker, its network or its package have to say
            print(f"{STAGE}: no live report ({type(e).__name__}: {e}); the training goes on", file=sys.stderr)
            logging.getLogger("attnrate.live").setLevel(logging.WARNING)


def without_denormals():
    """Numbers below 1e-38 are zero, in this thread and all that it starts, on x86 with glibc; elsewhere nothing.

    A ReLU that has died leaves a momentum that halves every 14 steps, down to such numbers, and an Intel CPU needs 40
    times as long for a product of them.
    """
    if sys.platform == "linux" and platform.machine() == "x86_64" and platform.libc_ver()[0] == "glibc":
        libm, environment = ctypes.CDLL("libm.so.6"), (ctypes.c_uint32 * 8)()  # fenv_t, whose last word is MXCSR
        libm.fegetenv(environment)
        environment[7] |= 0x8040  # results below are zero, operands too
        libm.fesetenv(environment)


# Machine tricks, each measured apart on 2 cores: garbage is looked for rarely (imports 0.8 s faster), and freed memory
# is kept, where giving it back costs page faults at every step (a step of Tables 2 and 3 takes 36 ms instead of 39).
without_denormals()
gc.set_threshold(1_000_000)
if sys.platform == "linux":
    libc = ctypes.CDLL(None)
    libc.mallopt(-3, 1 << 30)  # M_MMAP_THRESHOLD
    libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD

for number in (signal.SIGINT, signal.SIGTERM):
    if signal.getsignal(number) is not signal.SIG_IGN:  # as it is in a shell's background
        signal.signal(number, stop)
logging.getLogger("attnrate.live").addHandler(Live())
logging.getLogger("attnrate.live").setLevel(logging.INFO)
logging.getLogger("attnrate.live").propagate = False
sys.excepthook = failed
atexit.register(ended)
refuse()
