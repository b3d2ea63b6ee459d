"""First import of every stage: this tree's own library, and the project's environment if it is not active."""

import importlib.util
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The tree a stage stands in is the one it runs: DVC also runs experiments in copies of the repository.
sys.path.insert(0, str(ROOT / "src"))
# NumPy's small matrices gain nothing from threads, and one thread gives the same bits everywhere.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

if importlib.util.find_spec("pydantic") is None:
    python = ROOT / ".venv" / "bin" / "python"
    if python.exists() and Path(sys.prefix) != ROOT / ".venv":
        os.execv(python, [str(python), *sys.argv])
    sys.exit("attnrate's environment is missing: run `make env`, then `source .venv/bin/activate`")
