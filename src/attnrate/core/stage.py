"""The run of a stage: flags in, parameters checked, its record written, seconds and memory logged, errors in one line."""

import argparse
import ctypes
import gc
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

TIMINGS = Path(".timings.jsonl")


class UserError(Exception):
    """Something the user can put right; the message says what, where and how."""


def run(
    main: Callable[[Any, argparse.Namespace], None],
    params: Iterable[str] = (),
    sections: Mapping[str, type] | None = None,
    *,
    inputs: Iterable[str] = (),
    outs: Iterable[str] = (),
    flags: Mapping[str, list[str] | None] | None = None,
) -> None:
    """Call main(cfg, args): cfg holds the declared params, args the paths `inputs` and `outs` and the `flags`.

    A flag lists its choices, or is None where any value will do. An out `record` is written here: core/record.py.
    """
    from attnrate.core import config, files, record  # config needs UserError

    gc.enable()
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    if params:
        parser.add_argument("--params", type=Path, required=True)
    for name in (*inputs, *outs):
        parser.add_argument(f"--{name.replace('_', '-')}", type=Path, required=True)
    for name, choices in (flags or {}).items():
        parser.add_argument(f"--{name}", choices=choices, required=True)
    args = parser.parse_args()
    name = os.environ.get("DVC_STAGE", Path(sys.argv[0]).stem)
    first = os.environ.get("RANK", "0") == "0"  # of the processes of `accelerate launch` or torchrun
    start = time.perf_counter()
    try:
        for path in (getattr(args, i) for i in inputs):
            if not path.exists():
                raise UserError(f"{path} is missing; `dvc repro {name}` makes it, `dvc checkout` restores it")
        cfg = config.load(args.params, params, sections or {}) if params else None
        if "threads" in params:
            _set_threads(cfg.threads)
        for number in (signal.SIGINT, signal.SIGTERM):  # a scheduler's stop is a Ctrl-C
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.default_int_handler)
        main(cfg, args)
        if "record" in outs and first:
            chosen = {flag: getattr(args, flag.replace("-", "_")) for flag in flags or ()}
            files.write_json(args.record, record.make(name, cfg, sections or {}, chosen))
    except UserError as e:
        sys.exit(f"{name}: {e}")
    except FileNotFoundError as e:
        sys.exit(f"{name}: {e.filename} is missing; `dvc repro {name}` makes it, `dvc checkout` restores it")
    except OSError as e:
        where = f"{e.filename}: " if e.filename else ""
        sys.exit(f"{name}: {where}{e.strerror or e}; no out is half-written: put that right, then `dvc repro`")
    except MemoryError as e:
        sys.exit(f"{name}: out of memory ({e}); make its batches, models or evaluation sets smaller in params.yaml")
    except KeyboardInterrupt as e:
        sys.exit(f"{name}: interrupted, no out is half-written; `dvc repro` {str(e) or 'starts this stage again'}")
    if first:
        _log(name, time.perf_counter() - start)
    if hasattr(sys.modules["__main__"], "bootstrap") and "RANK" not in os.environ:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # all is written, and PyTorch takes a second to take itself apart


def _set_threads(threads: int) -> None:
    import torch  # two seconds that figures need not pay

    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # with NaN, for code that reads before it writes
    if sys.platform == "linux":  # keep freed memory: giving it back costs page faults at every step
        libc = ctypes.CDLL(None)
        libc.mallopt(-3, 1 << 30)  # M_MMAP_THRESHOLD
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD


def _log(name: str, seconds: float) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**30 if sys.platform == "darwin" else 2**20)
    print(f"{name}: {seconds:.1f} s, {peak:.2f} GB peak", file=sys.stderr)
    with TIMINGS.open("a") as f:
        f.write(json.dumps({"stage": name, "seconds": round(seconds, 2), "peak_gb": round(peak, 3)}) + "\n")
