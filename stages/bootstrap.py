"""First import of every stage: this tree's own library, and the project's environment if it is not active."""

import gc
import importlib.util
import os
import signal
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The tree a stage stands in is the one it runs: DVC also runs experiments in copies of the repository.
sys.path.insert(0, str(ROOT / "src"))
# NumPy's small matrices gain nothing from threads, and one thread gives the same bits everywhere.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
gc.disable()  # modules that are imported stay: looking for garbage among them costs a second; stage.run turns it on again


def _leave(number, frame):
    """A stop while modules are imported, some of which a KeyboardInterrupt would crash; stage.run takes over later."""
    name = os.environ.get("DVC_STAGE", Path(sys.argv[0]).stem)
    os.write(2, f"{name}: interrupted, nothing was begun; `dvc repro` starts this stage again\n".encode())
    os._exit(128 + number)


for number in (signal.SIGINT, signal.SIGTERM):
    if signal.getsignal(number) is not signal.SIG_IGN:  # as it is in a shell's background
        signal.signal(number, _leave)

if importlib.util.find_spec("pydantic") is None:
    python = ROOT / ".venv" / "bin" / "python"
    if python.exists() and Path(sys.prefix) != ROOT / ".venv":
        os.execv(python, [str(python), *sys.argv])
    sys.exit("attnrate's environment is missing: run `make env`, then `source .venv/bin/activate`")
