"""dvc.yaml says what the code does: DVC follows neither imports nor paths, so a gap here is a stale result."""

import ast
import re
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import yaml

from tests import pipeline
from tests.conftest import ROOT
from tests.pipeline import NONE, Stage, covers

STAGES = {s.name: s for s in pipeline.stages(ROOT)}
PACKAGE = sorted((ROOT / "src" / "attnrate").rglob("*.py"))
PARAMS = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
SCALARS = {key for key, value in PARAMS.items() if not isinstance(value, dict)}
KNOWN_PLACES = (
    r"reports/(params\.ok|figures/\w+\.(svg|png)|tables/\w+\.(csv|md|tex)|plots|claims\.(json|md)|index\.html)"
    r"|reports/metrics/summary\.json|data/targets/[\w.]+"
)
each_stage = pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)


# What a stage is made of, what it asks for and what it touches. Each gives the gaps, in words.


def code_gap(root: Path, stage: Stage) -> set[str]:
    used = pipeline.closure(root, stage.script)
    found = {f"{file} is imported but no dep" for file in used if not any(covers(d, file) for d in stage.code)}
    found |= {f"{file} is a dep twice" for file in used if sum(covers(d, file) for d in stage.code) > 1}
    return found | {f"{dep} is a needless dep" for dep in stage.code if not any(covers(dep, f) for f in used)}


def params_gap(root: Path, stage: Stage) -> set[str]:
    used = pipeline.script(root, stage).params
    if "" in used:  # the whole of p: the file itself is the dep
        return set() if "params.yaml" in stage.deps and not stage.params else {"params.yaml is used but no dep"}
    below = {key: [listed for listed in stage.params if f"{key}.".startswith(f"{listed}.")] for key in used}
    found = {f"{key} is used but not listed" for key in used if not below[key]}
    return found | {f"{p} is listed but not used" for p in stage.params if not any(p in b for b in below.values())}


def own_folder(stage: Stage, kind: str) -> str:
    top = {"results": "reports/results", "data": "data"}[kind]
    return "/".join([top, Path(stage.script).stem, *(["-".join(stage.items)] if stage.items else [])])


def paths_gap(root: Path, stage: Stage) -> set[str]:
    script, closure = pipeline.script(root, stage), pipeline.closure(root, stage.script)
    words, named = pipeline.words(root, closure), script.paths
    written = {own_folder(stage, w) if w in ("results", "data") else w for w in script.written}
    if "reports/results" in named:  # the folder as a whole goes to the library, which names what it reads
        scripts = {Path(s.script).stem for s in pipeline.stages(root)}
        named = named - {"reports/results"} | {f"reports/results/{w}" for w in words if w.split("/")[0] in scripts}
    known = [*stage.data, *stage.outs]
    found = {f"{p} is neither dep nor out" for p in named | written if not any(covers(k, p) for k in known)}
    found |= {f"{out} is not written" for out in stage.outs if out not in named | written}
    for dep in stage.data:
        name = re.sub(r"^(reports/results|reports|data/targets|data|docs)/", "", dep)
        told = any(word in (name, dep) or word.startswith(f"{name}/") for word in words)
        if not told and not any(covers(dep, path) for path in named):
            found.add(f"{dep} is a dep but not read")
    return found


@each_stage
@pytest.mark.parametrize("gap", [code_gap, params_gap, paths_gap])
def test_a_stage_lists_what_it_uses_and_nothing_else(stage, gap):
    assert gap(ROOT, stage) == set()


@each_stage
def test_parameters_are_listed_by_groups(stage):
    groups = [p for p in stage.params if p not in SCALARS]
    assert all(isinstance(pipeline.lookup(PARAMS, p), dict) for p in groups)


@each_stage
def test_what_cannot_change_a_result_is_in_no_training(stage):
    """Messages, descriptions and tools: `validate` and `page` alone read the schemas."""
    rooms = {file.split("/")[2] for file in pipeline.closure(ROOT, stage.script) if file.startswith("src/")}
    assert not rooms & {"ops", "tool"}
    assert ("schemas" in rooms) == (stage.name in ("validate", "page"))
    assert pipeline.LAUNCHER not in stage.deps


@each_stage
def test_the_launcher_comes_first(stage):
    """It finds the library and the environment, and must run before NumPy is imported."""
    first = next(n for n in pipeline.parse(ROOT / stage.script).body if isinstance(n, ast.Import | ast.ImportFrom))
    assert ast.unparse(first) == "import launcher"


@each_stage
def test_outs_have_their_places(stage):
    places = {own_folder(stage, kind): kind for kind in ("results", "data")}
    for out, options in stage.outs.items():
        assert out in places or re.fullmatch(KNOWN_PLACES, out), out
        in_git = options.get("cache", True) is False
        assert in_git == (places.get(out) != "data"), f"{out}: small outs are in git, the others in the cache"


def producers(stage: Stage) -> set[str]:
    """Stages whose outs a stage depends on, be it a file of a folder of outs or the folder."""
    others = [s for s in STAGES.values() if s is not stage]
    return {s.name for s in others if any(covers(dep, out) for out in s.outs for dep in stage.deps)}


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
def test_every_dep_is_there_or_is_made(stage):
    outs = [out for other in STAGES.values() if other is not stage for out in other.outs]
    for dep in stage.deps:
        assert any(covers(dep, out) for out in outs) or (ROOT / dep).exists(), dep


@each_stage
def test_every_stage_says_what_it_is(stage):
    assert len(stage.desc) > 5 and stage.meta["branch"]
    assert set(stage.meta) <= {"branch", "gpu"} and stage.meta.get("gpu", True) is True


def test_exactly_the_trainings_on_accelerate_are_launched_by_the_parameter():
    blocks = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    launched = {name for name, block in blocks.items() if block["cmd"].startswith("${launch} stages/")}
    large = {s.name for s in STAGES.values() if "src/attnrate/large/loop.py" in pipeline.closure(ROOT, s.script)}
    assert launched == {name.partition("@")[0] for name in large} | {"vit_gate", "vit_tuned"}
    assert all(block["cmd"].startswith("python stages/") for name, block in blocks.items() if name not in launched)


def test_git_ignores_data_in_one_place():
    """A .gitignore of DVC in a folder of outs would pass for data in a clone without cache."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "data", "reports"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    assert [name for name in listed if name.endswith(".gitignore")] == []
    cached = [out for s in STAGES.values() for out, options in s.outs.items() if options.get("cache", True)]
    ignored = subprocess.run(["git", "check-ignore", *cached], cwd=ROOT, capture_output=True, text=True).stdout
    assert sorted(ignored.splitlines()) == sorted(cached)


def test_every_stage_script_is_in_the_dag():
    used = {s.script for s in STAGES.values()} | {pipeline.LAUNCHER} | {f"stages/{name}.py" for name in NONE}
    assert {f"stages/{p.name}" for p in (ROOT / "stages").glob("*.py")} == used


@pytest.mark.parametrize("file", [p for p in PACKAGE if p.name == "__init__.py"], ids=lambda p: p.parent.name)
def test_packages_hold_only_a_docstring(file):
    """They are left out of the closure, so that they must not import anything."""
    body = pipeline.parse(file).body
    assert len(body) == 1 and isinstance(body[0], ast.Expr) and isinstance(body[0].value.value, str)


def test_files_beside_a_module_are_read_through_with_name():
    """Any other use of __file__ would hide a dep from the closure."""
    for file in PACKAGE:
        uses = sum(isinstance(n, ast.Name) and n.id == "__file__" for n in ast.walk(pipeline.parse(file)))
        found = [n for n in pipeline.neighbours(ROOT, file) if n.suffix != ".py"]
        assert uses == len(found), f"{file}: write Path(__file__).with_name('...')"
        assert all(n.is_file() for n in found)


# The size of what people read


def lines(*files: Path) -> list[str]:
    return [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def test_dvc_yaml_can_be_read_in_one_go():
    text = lines(ROOT / "dvc.yaml")
    assert len(text) <= 600 and max(map(len, text)) <= 120 and len(STAGES) <= 58
    body = "\n".join(text).partition("\nstages:\n")[2].partition("\nmetrics:")[0]
    blocks = re.split(r"^  (?=\w+:$)", re.sub(r"^ *#.*$", "", body, flags=re.MULTILINE), flags=re.MULTILINE)[1:]
    assert len(blocks) == len({name.partition("@")[0] for name in STAGES} | NONE)
    assert [block for block in blocks if len([line for line in block.splitlines() if line.strip()]) > 14] == []


def test_what_every_stage_shares_is_small():
    assert len(lines(*(ROOT / "src/attnrate/core").glob("*.py"))) <= 250


def test_the_readme_is_short():
    assert len(lines(ROOT / "README.md")) <= 130


# A gap is noticed


@pytest.fixture
def tree(tmp_path):
    """A copy of everything that the checks above read."""
    for name in ("stages", "src"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("dvc.yaml", "params.yaml"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text, f"{file} does not hold {old!r}"
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def prepend(file: Path, line: str) -> None:
    file.write_text(line + file.read_text(encoding="utf-8"), encoding="utf-8")


@cache
def known(gap: Callable[[Path, Stage], set[str]], name: str) -> set[str]:
    """Gaps of the tree itself, which no test changes."""
    return gap(ROOT, STAGES[name])


def new_gaps(root: Path, gap: Callable[[Path, Stage], set[str]]) -> dict[str, set[str]]:
    """Gaps of a changed copy that the tree itself does not have."""
    return {s.name: new for s in pipeline.stages(root) if (new := gap(root, s) - known(gap, s.name))}


@pytest.mark.parametrize("line", ["from attnrate.small import transformer\n", "import attnrate.small.transformer\n"])
def test_a_new_import_of_a_stage_is_noticed(tree, line):
    prepend(tree / "stages" / "mixing_rank.py", line)
    says = {"src/attnrate/small/transformer.py is imported but no dep"}
    assert new_gaps(tree, code_gap) == {"mixing_rank": says}


def test_a_new_import_deep_in_the_library_is_noticed(tree):
    prepend(tree / "src/attnrate/laws/powerlaw.py", "def f():\n    from attnrate.ops import profile\n")
    found = new_gaps(tree, code_gap)
    assert set(found) == {"rates_exact", "rates_table", "claims"}
    assert all("src/attnrate/ops/profile.py is imported but no dep" in gap for gap in found.values())


@pytest.mark.parametrize("dep", ["src/attnrate/small", "src/attnrate/small/transformer.py"])
def test_a_needless_dep_is_noticed(tree, dep):
    edit(tree / "dvc.yaml", "src/attnrate/linear/mixing_rank.py", f"src/attnrate/linear/mixing_rank.py, {dep}")
    assert new_gaps(tree, code_gap) == {"mixing_rank": {f"{dep} is a needless dep"}}


def test_a_file_that_two_deps_cover_is_noticed(tree):
    dep = "src/attnrate/linear/mixing_rank.py"
    edit(tree / "dvc.yaml", dep, f"{dep}, src/attnrate/linear")
    assert new_gaps(tree, code_gap) == {"mixing_rank": {f"{dep} is a dep twice"}}


def test_a_new_data_file_of_a_module_is_noticed(tree):
    line = "from pathlib import Path\nX = Path(__file__).with_name('x.toml')\n"
    prepend(tree / "src/attnrate/linear/mixing_rank.py", line)
    assert new_gaps(tree, code_gap) == {"mixing_rank": {"src/attnrate/linear/x.toml is imported but no dep"}}


@pytest.mark.parametrize(
    ("new", "says"),
    [
        ("p.linear.eval.size + p.mh", None),  # both are listed already
        ("p.linear.rnn.lr", "linear.rnn.lr is used but not listed"),
        ("p.linear.recipes['plain']", "linear.recipes.plain is used but not listed"),
        ("p.linear.recipes", "linear.recipes is used but not listed"),
        ("p", "params.yaml is used but no dep"),
    ],
)
def test_a_new_parameter_of_a_stage_is_noticed(tree, new, says):
    edit(tree / "stages/linear_train.py", "run_transformer(cells, p.mh,", f"run_transformer(cells, (p.mh, {new}),")
    found = new_gaps(tree, params_gap)
    assert bool(found) == bool(says) and (not says or "linear_train@centred" in found)
    assert all(says in gap for gap in found.values())


def test_a_needless_parameter_is_noticed(tree):
    edit(tree / "dvc.yaml", "params: [linear.target]", "params: [linear.target, linear.eval]")
    assert new_gaps(tree, params_gap) == {"propositions": {"linear.eval is listed but not used"}}
    edit(tree / "stages/linear_table.py", "p.profile", "'laptop'")
    edit(tree / "stages/linear_table.py", "{p.profile}", "laptop")
    assert new_gaps(tree, params_gap)["linear_table"] == {"profile is listed but not used"}


def test_a_page_without_the_file_of_its_settings_is_noticed(tree):
    edit(tree / "dvc.yaml", "deps: [params.yaml, reports/claims.json,", "deps: [reports/claims.json,")
    assert new_gaps(tree, params_gap) == {"page": {"params.yaml is used but no dep"}}


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        (  # by a constant
            "stages/fig_vit.py",
            'stage.results("vit_table") / "fits.json"',
            'stage.results("rates_table") / "fits.json"',
            {"fig_vit": {"reports/results/rates_table/fits.json is neither dep nor out"}},
        ),
        (  # by a tuple of the module
            "stages/linear_table.py",
            '"linear_train/plain", ',
            '"linear_train/plain", "vit_main", ',
            {"linear_table": {"reports/results/vit_main/errors.csv is neither dep nor out"}},
        ),
        (  # by a dict of the module
            "stages/rates_table.py",
            '"rates_train/paper"',
            '"vit_sweep/qk-1"',
            {"rates_table": {"reports/results/vit_sweep/qk-1/errors.csv is neither dep nor out"}},
        ),
        (  # by the beginning of an f-string, in a list that a loop unpacks
            "stages/vit_table.py",
            '*(f"vit_beside/{part}"',
            '*(f"linear_train/{part}"',
            {
                "vit_table": {
                    "reports/results/linear_train is neither dep nor out",
                    "reports/results/vit_beside is a dep but not read",
                }
            },
        ),
        (  # by what only a run can tell
            "stages/table1.py",
            'stage.results("vit_table")',
            "stage.results(p.profile)",
            {
                "table1": {
                    "reports/results/?/vit.csv is neither dep nor out",
                    "reports/results/vit_table is a dep but not read",
                }
            },
        ),
        (
            "dvc.yaml",
            "deps: [reports/results/examples_train, stages/examples_table.py",
            "deps: [reports/results/examples_train, reports/results/linear_rnn, stages/examples_table.py",
            {"examples_table": {"reports/results/linear_rnn is a dep but not read"}},
        ),
        (
            "dvc.yaml",
            "outs: [reports/results/mixing_rank: *git]",
            "outs: [reports/results/mixing_rank: *git, data/mixing_rank]",
            {"mixing_rank": {"data/mixing_rank is not written"}},
        ),
        (
            "dvc.yaml",
            "reports/figures/fig2.svg: *git, ",
            "",
            {"fig_vit": {"reports/figures/fig2.svg is neither dep nor out"}},
        ),
        (
            "stages/fig1.py",
            'figure.save("fig1",',
            'figure.save("figure1",',
            {
                "fig1": {
                    "reports/figures/figure1.svg is neither dep nor out",
                    "reports/figures/figure1.png is neither dep nor out",
                    "reports/figures/fig1.svg is not written",
                    "reports/figures/fig1.png is not written",
                }
            },
        ),
    ],
)
def test_a_new_path_is_noticed(tree, file, old, new, says):
    edit(tree / file, old, new)
    assert new_gaps(tree, paths_gap) == says


def test_a_path_deep_in_the_library_is_noticed(tree):
    """A stage that hands on the folder of results reads what the library names in it."""
    edit(
        tree / "dvc.yaml",
        "deps: [reports/results, stages/claims.py",
        "deps: [reports/results/vit_table, stages/claims.py",
    )
    found = new_gaps(tree, paths_gap)
    assert set(found) == {"claims"}
    assert "reports/results/vit_spectra/values.csv is neither dep nor out" in found["claims"]
    assert not any("vit_table" in gap for gap in found["claims"])


def test_a_recipe_that_another_parameter_names_is_that_of_the_parameter(tree):
    """p.vit.recipes[p.vit.main.recipe] and vit.recipes.${vit.main.recipe} go together."""
    edit(tree / "params.yaml", "    start: scratch\n    recipe: muon\n", "    start: scratch\n    recipe: adamw\n")
    main = next(s for s in pipeline.stages(tree) if s.name == "vit_main@all")
    assert "vit.recipes.adamw" in main.params and params_gap(tree, main) == set()
    edit(tree / "stages/vit_main.py", "p.vit.recipes[p.vit.main.recipe]", "p.vit.recipes[p.vit.beside.recipe]")
    gaps = {f"vit.{key} is used but not listed" for key in ("beside.recipe", "recipes.muon")}
    assert params_gap(tree, main) == gaps | {"vit.recipes.adamw is listed but not used"}


def test_a_matrix_is_expanded_as_dvc_does():
    block = {"matrix": {"a": ["${x.y}", "q"], "b": [1, 2]}, "cmd": "python stages/s.py ${item.a} ${item.b}"}
    found = dict(pipeline.expand("s", block, {"x": {"y": "p"}}))
    assert list(found) == ["s@p-1", "s@p-2", "s@q-1", "s@q-2"]
    assert found["s@q-1"]["cmd"] == "python stages/s.py q 1"
