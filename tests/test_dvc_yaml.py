"""dvc.yaml says what the code does: DVC follows neither imports nor paths, so a gap here is a stale result."""

import ast
import shutil
from pathlib import Path

import pytest

from tests import pipeline
from tests.conftest import ROOT

STAGES = {s.name: s for s in pipeline.stages(ROOT)}
PACKAGE = sorted((ROOT / "src" / "attnrate").rglob("*.py"))
each_stage = pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)


def is_code(dep: str) -> bool:
    return dep.startswith(("src/", "stages/"))


def code_gap(root: Path, stage: pipeline.Stage) -> set[str]:
    """Code that the stage lists but does not use, or uses but does not list."""
    return {d for d in stage.deps if is_code(d)} ^ pipeline.closure(root, stage.script)


def covers(parent: str, path: str) -> bool:
    return path == parent or path.startswith(f"{parent}/")


@each_stage
def test_code_deps_are_the_import_closure(stage):
    assert code_gap(ROOT, stage) == set()


@each_stage
def test_params_are_those_of_the_script(stage):
    wanted = pipeline.declared(ROOT, stage.script)["params"]
    assert sorted(stage.params) == sorted(wanted)
    assert ("params" in stage.flags) == bool(wanted) or "params.yaml" in stage.deps


@each_stage
def test_paths_of_the_command_are_deps_and_outs(stage):
    says = pipeline.declared(ROOT, stage.script)
    paths = {k: v for k, v in stage.flags.items() if k not in says["flags"] and (k != "params" or k in says["inputs"])}
    assert set(paths) == {*says["inputs"], *says["outs"]}
    assert {paths[name] for name in says["outs"]} == set(stage.outs)
    for path in (paths[name] for name in says["inputs"]):
        assert any(covers(path, dep) for dep in stage.deps), f"{path} is read but no dep"
    data = {d for d in stage.deps if not is_code(d) and d != "reports/params.ok"}
    for dep in data:
        assert any(covers(paths[name], dep) for name in says["inputs"]), f"{dep} is a dep but not read"


def producers(stage: pipeline.Stage) -> set[str]:
    """Stages whose outs a stage depends on, be it a file of a folder of outs or the folder."""
    return {
        other.name
        for other in STAGES.values()
        if other is not stage
        for out in other.outs
        for dep in stage.deps
        if covers(dep, out)
    }


@each_stage
def test_nothing_runs_before_the_parameters_are_checked(stage):
    if stage.name == "validate":
        assert producers(stage) == set()
    else:
        assert producers(stage), "a stage without a producer should depend on reports/params.ok"


@each_stage
def test_no_dep_lies_inside_another_stages_out(stage):
    outs = [out for other in STAGES.values() for out in other.outs]
    assert [d for d in stage.deps for out in outs if d != out and covers(out, d)] == []


@each_stage
def test_small_outs_are_in_git_and_weights_in_the_cache(stage):
    for path, options in stage.outs.items():
        in_git = options.get("cache", True) is False
        if path.startswith("reports/"):
            assert in_git, f"{path} should be cache: false"
        if path.endswith((".safetensors", ".tar", ".pt")) or path.startswith("data/models/"):
            assert not in_git, f"{path} should be cached, not in git"


@each_stage
def test_every_result_has_a_record_and_the_record_a_data_set(stage):
    """core/record.py reads the profile and the name of the data set from the declared parameters."""
    record = stage.flags.get("record")
    results = [out for out in stage.outs if out.startswith(("data/", "reports/results/"))]
    assert bool(record) == bool(results)
    if record:
        assert "profile" in stage.params and stage.outs[record] == {"cache": False}
        for head, key in (("vit", "vit.data"), ("translation", "translation.corpus")):
            assert key in stage.params or not any(p.startswith(f"{head}.") for p in stage.params)


def test_an_aggregator_depends_on_no_folder_of_cached_outs():
    """In a clone without cache DVC would take the folder's .gitignore for the data."""
    cached = [out for s in STAGES.values() for out, options in s.outs.items() if options.get("cache", True)]
    bad = [(s.name, d) for s in STAGES.values() for d in s.deps for out in cached if d != out and covers(d, out)]
    assert bad == []


def test_every_stage_script_is_in_the_dag():
    used = {s.script for s in STAGES.values()} | {"stages/bootstrap.py"}
    assert {f"stages/{p.name}" for p in (ROOT / "stages").glob("*.py")} == used


@pytest.mark.parametrize("file", [p for p in PACKAGE if p.name == "__init__.py"], ids=lambda p: p.parent.name)
def test_packages_hold_only_a_docstring(file):
    """They are left out of the closure, so that they must not import anything."""
    body = pipeline.parse(file).body
    assert len(body) == 1 and isinstance(body[0], ast.Expr) and isinstance(body[0].value.value, str)


def test_files_beside_a_module_are_read_through_with_name():
    """Any other use of __file__ would hide a dep from the closure."""
    for file in PACKAGE:
        tree = pipeline.parse(file)
        uses = sum(isinstance(n, ast.Name) and n.id == "__file__" for n in ast.walk(tree))
        found = [n for n in pipeline.neighbours(ROOT, file) if n.suffix != ".py"]
        assert uses == len(found), f"{file}: write Path(__file__).with_name('...')"
        assert all(n.is_file() for n in found)


@pytest.fixture
def tree(tmp_path):
    """A copy of everything that the checks above read."""
    for name in ("stages", "src"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("dvc.yaml", "params.yaml"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def prepend(path: Path, line: str) -> None:
    path.write_text(line + path.read_text(encoding="utf-8"), encoding="utf-8")


def new_gaps(root: Path) -> dict[str, set[str]]:
    """Gaps of a changed copy that the tree itself does not have."""
    old = {s.name: code_gap(ROOT, s) for s in STAGES.values()}
    return {s.name: gap for s in pipeline.stages(root) if (gap := code_gap(root, s) - old[s.name])}


@pytest.mark.parametrize("line", ["from attnrate.models import transformer\n", "import attnrate.small.transformer\n"])
def test_a_new_import_of_a_stage_is_noticed(tree, line):
    prepend(tree / "stages" / "mixing_rank.py", line)
    assert new_gaps(tree) == {"mixing_rank": {"src/attnrate/models/transformer.py"}}


def test_a_new_import_deep_in_the_library_is_noticed(tree):
    prepend(tree / "src" / "attnrate" / "analysis" / "powerlaw.py", "def f():\n    from attnrate import profile\n")
    found = new_gaps(tree)
    assert {"rates_table", "fig1", "claims"} <= set(found)
    assert all("src/attnrate/profile.py" in gap for gap in found.values())


def test_a_needless_dep_is_noticed(tree):
    file, old = tree / "dvc.yaml", "      - src/attnrate/analysis/mixing_rank.py\n"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(old, old + "      - src/attnrate/models/transformer.py\n", 1), encoding="utf-8")
    assert new_gaps(tree) == {"mixing_rank": {"src/attnrate/models/transformer.py"}}


def test_a_new_data_file_of_a_module_is_noticed(tree):
    prepend(
        tree / "src/attnrate/analysis/mixing_rank.py",
        "from pathlib import Path\nX = Path(__file__).with_name('x.toml')\n",
    )
    assert new_gaps(tree) == {"mixing_rank": {"src/attnrate/analysis/x.toml"}}


def test_a_matrix_is_expanded_as_dvc_does():
    block = {"matrix": {"a": ["${x.y}", "q"], "b": [1, 2]}, "cmd": "python stages/s.py --a ${item.a} --b ${item.b}"}
    found = dict(pipeline.expand("s", block, {"x": {"y": "p"}}))
    assert list(found) == ["s@p-1", "s@p-2", "s@q-1", "s@q-2"]
    assert found["s@q-1"]["cmd"] == "python stages/s.py --a q --b 1"
