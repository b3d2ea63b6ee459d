"""Peak memory of a call (Linux), without PyTorch."""

import ctypes
import gc
import re
from collections.abc import Callable
from pathlib import Path


def peak(call: Callable[[], object]) -> float:
    """Bytes by which the process grows at most while call() runs (Linux)."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again here

    def status(key: str) -> int:
        return 1024 * int(re.search(rf"{key}:\s+(\d+)", Path("/proc/self/status").read_text())[1])

    before = status("VmRSS")
    call()
    return float(max(0, status("VmHWM") - before))
