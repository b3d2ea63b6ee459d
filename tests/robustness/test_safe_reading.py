"""Nothing in the project can run code out of a file: no unpickling, no evaluation, no unpacking of archives."""

import ast
import functools
from pathlib import Path

import yaml

from attnrate.core import params
from tests.conftest import ROOT

SOURCES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "stages").glob("*.py")])
FORBIDDEN_MODULES = {
    "pickle",
    "cPickle",
    "_pickle",
    "dill",
    "cloudpickle",
    "joblib",
    "shelve",
    "marshal",
    "shutil.unpack_archive",
}
FORBIDDEN_CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "torch.load",
    "torch.hub.load",
    "pd.read_pickle",
    "pandas.read_pickle",
    "yaml.unsafe_load",
    "yaml.full_load",
    "yaml.load_all",
    "os.system",
    "os.popen",
    "shutil.unpack_archive",
}
FORBIDDEN_METHODS = {"extractall", "extract", "unpack_archive"}


@functools.cache
def nodes() -> list[tuple[Path, ast.AST]]:
    return [(path, node) for path in SOURCES for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]


def calls():
    """(place, dotted name, call) of every call."""
    for path, node in nodes():
        if isinstance(node, ast.Call):
            yield f"{path.relative_to(ROOT)}:{node.lineno}", ast.unparse(node.func), node


def test_there_is_something_to_look_at():
    assert len(SOURCES) > 100 and sum(name == "np.load" for _, name, _ in calls()) >= 1


def test_nothing_is_unpickled_evaluated_or_unpacked():
    found = [
        place for place, name, _ in calls() if name in FORBIDDEN_CALLS or name.rpartition(".")[2] in FORBIDDEN_METHODS
    ]
    assert found == []


def test_no_module_that_unpickles_is_imported():
    found = []
    for path, node in nodes():
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        found += [f"{path.relative_to(ROOT)}: {name}" for name in names if name in FORBIDDEN_MODULES]
    assert found == []


def test_numpy_is_told_not_to_unpickle():
    found = []
    for place, name, call in calls():
        given = {k.arg: k.value for k in call.keywords}
        if name in ("np.load", "numpy.load") and ast.unparse(given.get("allow_pickle", ast.Constant(None))) != "False":
            found.append(place)
        if name not in ("np.load", "numpy.load") and "allow_pickle" in given:
            found.append(place)
    assert found == []


HELD = ("src/attnrate/ops/", "src/attnrate/report/published.py")


def test_yaml_is_read_by_safe_loaders():
    """Parameters by the loader of core/params.py alone; the others read what git and DVC hold."""
    found = {
        place.rpartition(":")[0]: ast.unparse(call.args[1]) for place, name, call in calls() if name == "yaml.load"
    }
    assert found.pop("src/attnrate/core/params.py") == "_Loader" and issubclass(params._Loader, yaml.SafeLoader)
    assert set(found.values()) == {"yaml.CSafeLoader"} and all(place.startswith(HELD) for place in found)
    assert not [place for place, name, _ in calls() if name.startswith("yaml.") and name.endswith("_load")]


def test_no_process_goes_through_a_shell():
    found = [
        place
        for place, name, call in calls()
        if name.startswith("subprocess.") and any(k.arg == "shell" for k in call.keywords)
    ]
    assert found == []
