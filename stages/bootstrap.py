"""First import of every stage: this tree's own library, and the project's environment if it is not active."""

import gc
import importlib.util
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The tree a stage stands in is the one it runs: DVC also runs experiments in copies of the repository.
sys.path.insert(0, str(ROOT / "src"))
# NumPy's small matrices gain nothing from threads, and one thread gives the same bits everywhere.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
gc.disable()  # modules that are imported stay: looking for garbage among them costs a second; stage.run turns it on again


def _report(kind, error, trace):
    """A Ctrl-C while modules are imported; stage.run takes over after that."""
    if not issubclass(kind, KeyboardInterrupt):
        return sys.__excepthook__(kind, error, trace)
    print(
        f"{Path(sys.argv[0]).stem}: interrupted, nothing was begun; `dvc repro` starts this stage again",
        file=sys.stderr,
    )


sys.excepthook = _report

if importlib.util.find_spec("pydantic") is None:
    python = ROOT / ".venv" / "bin" / "python"
    if python.exists() and Path(sys.prefix) != ROOT / ".venv":
        os.execv(python, [str(python), *sys.argv])
    sys.exit("attnrate's environment is missing: run `make env`, then `source .venv/bin/activate`")
