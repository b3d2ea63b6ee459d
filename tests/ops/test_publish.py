"""`attnrate publish`: a small pipeline of two branches, run by DVC at desk scale, then published and compared."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from attnrate import cli
from attnrate.ops import costs, fresh, publish
from attnrate.report import published
from attnrate.report.claims import summary
from attnrate.report.claims.all import EVALUATORS
from attnrate.report.claims.ledger import Undecided, criterion, read_criteria
from tests import pipeline
from tests.conftest import ROOT
from tests.ops import night
from tests.ops.night import repro, run, write

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inside DVC
FOLDER = Path("reports/published/desk/appendix-b")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    return night.make(tmp_path_factory.mktemp("night"))


@pytest.fixture(autouse=True)
def tree(made, in_scratch, tmp_path, monkeypatch):
    """A copy of it."""
    shutil.copytree(made, tmp_path / "night", symlinks=True)
    monkeypatch.chdir(tmp_path / "night")


def refused(words: str, *args: str) -> None:
    """In one line, and nothing is written."""
    before = sorted(Path("reports/published").rglob("*"))
    with pytest.raises(SystemExit, match=rf"^attnrate publish: [^\n]*{words}[^\n]*$"):
        cli.main(["publish", *args])
    assert sorted(Path("reports/published").rglob("*")) == before


def set_params(**changed) -> None:
    write("params.yaml", yaml.safe_dump(yaml.safe_load(Path("params.yaml").read_text()) | changed))


def test_a_branch_is_published_with_all_that_it_needs_and_nothing_else(capsys):
    cli.main(["publish", "appendix-b", "--profile", "desk"])
    assert "MB in all" in capsys.readouterr().out
    found = {p.relative_to(FOLDER).as_posix() for p in FOLDER.rglob("*") if p.is_file()}
    train = {f"results/examples_train/{task}/history.csv" for task in ("mass", "nearest")}
    records = {f"{name}.json" for name in ("about", "claims", "metrics", "runs")} | {"params.yaml", "lock.yaml"}
    shown = {"figures/fig4.png", "tables/table1.csv", "plots/examples_curve.csv"}
    assert found == train | records | shown | {"results/examples_table/examples.csv"}
    assert [row["id"] for row in json.loads((FOLDER / "claims.json").read_text())] == ["a"]
    assert json.loads((FOLDER / "metrics.json").read_text()) == {"corr": 0.9}
    lock = published.read_lock(FOLDER / "lock.yaml")
    assert set(lock) == {"examples_train@mass", "examples_train@nearest", "examples_table", "fig_examples"}
    assert lock == {name: stage for name, stage in published.read_lock(Path("dvc.lock")).items() if name in lock}
    own = {"profile": "desk", "threads": 2, "examples": {"steps": 9, "seeds": [0]}}
    assert yaml.safe_load((FOLDER / "params.yaml").read_text()) == own
    about = json.loads((FOLDER / "about.json").read_text())
    assert about["commit"] == run("git", "rev-parse", "HEAD").strip() and about["branch"] == "Appendix B"
    assert "a processor" in (FOLDER / "runs.json").read_text()
    text = (FOLDER.parent / "costs.md").read_text()
    assert "| Appendix B | 4 | 2.4 | 1.5 |" in text and "beyond_heads" not in text


def test_all_branches_at_once_and_no_pipeline_among_them():
    cli.main(["publish", "all"])
    assert {p.name for p in FOLDER.parent.iterdir() if p.is_dir()} == {"appendix-b", "beyond"}
    assert not [p for p in Path("reports/published").rglob("*") if p.name in ("dvc.yaml", "dvc.lock")]
    assert run(sys.executable, "-m", "dvc", "status").startswith("Data and pipelines are up to date")


def test_publishing_changes_nothing_that_a_stage_reads():
    before = published.read_lock(Path("dvc.lock"))
    cli.main(["publish", "all"])
    repro()
    assert published.read_lock(Path("dvc.lock")) == before


def test_a_branch_that_is_not_up_to_date_is_refused_and_the_other_is_not():
    write("reports/results/beyond_heads/errors.csv", "edited")
    refused("beyond is not up to date: `dvc repro beyond_heads` first", "beyond")
    refused("beyond is not up to date", "all")
    shutil.rmtree("reports/results/beyond_heads")
    repro("beyond_heads")
    cli.main(["publish", "beyond"])


def test_another_day_leaves_what_was_published_before():
    """Table 1, which the two branches share, belongs to the day on which both are there."""
    set_params(beyond={"steps": 7})
    write("profiles/desk.yaml", "profile: desk\nexamples: {steps: 9}\nbeyond: {steps: 7}\n")
    run("git", "add", "profiles")
    run("git", "commit", "--quiet", "--message", "more steps")
    repro("validate", "claims", "plots", single_item=True)
    cli.main(["publish", "appendix-b"])
    assert not (FOLDER / "tables").exists()
    first = json.loads((FOLDER / "about.json").read_text())
    repro()
    write("note.md", "another day")
    run("git", "add", "note.md")
    run("git", "commit", "--quiet", "--message", "another day")
    cli.main(["publish", "beyond"])
    assert json.loads((FOLDER / "about.json").read_text()) == first
    other = json.loads((FOLDER.parent / "beyond/about.json").read_text())
    assert other["commit"] != first["commit"] and (FOLDER.parent / "beyond/tables/table1.csv").exists()


def test_results_that_are_not_judged_yet_are_refused():
    set_params(examples={"steps": 9, "seeds": [1]})
    write("profiles/desk.yaml", "profile: desk\nexamples: {steps: 9, seeds: [1]}\n")
    run("git", "commit", "--quiet", "--all", "--message", "another seed")
    write("stages/work.py", night.SCRIPT.replace("LOSS = 0.1", "LOSS = 0.2"))
    run("git", "commit", "--quiet", "--all", "--message", "another loss")
    repro("fig_examples")
    refused("not judged yet: `dvc repro --single-item claims plots` first", "appendix-b")


@pytest.mark.parametrize(
    ("changed", "args", "words"),
    [
        ({"profile": "laptop"}, ["appendix-b"], "laptop is not published, only desk and paper are"),
        ({"profile": "smoke"}, ["appendix-b"], "smoke is not published"),
        ({}, ["appendix-b", "--profile", "paper"], "params.yaml has the profile desk, not paper"),
        ({}, ["figure-7"], "figure-7 is no branch: all, appendix-b, beyond"),
        ({}, ["report"], "report is no branch"),
    ],
)
def test_the_wrong_profile_or_branch_is_told(changed, args, words):
    if changed:
        set_params(**changed)
    refused(words, *args)


def test_other_parameters_than_the_profiles_are_refused_but_for_threads():
    set_params(threads=1)
    repro()
    cli.main(["publish", "appendix-b"])
    set_params(examples={"steps": 8, "seeds": [0]})
    repro()
    refused("appendix-b ran with examples.steps = 8, profiles/desk.yaml means 9", "appendix-b")
    cli.main(["publish", "beyond"])  # which does not read it


def test_code_that_is_not_committed_is_refused():
    write("src/lib/other.py", "y = 2\n")
    refused("src/lib/other.py is not committed", "appendix-b")


def test_a_publication_that_fails_leaves_the_one_before(monkeypatch):
    cli.main(["publish", "appendix-b"])
    before = {p: p.read_bytes() for p in FOLDER.rglob("*") if p.is_file()}

    def full(*_):
        raise OSError(28, "No space left", "disk")

    monkeypatch.setattr(publish, "runs_of", full)
    refused("No space left", "appendix-b")
    assert {p: p.read_bytes() for p in FOLDER.rglob("*") if p.is_file()} == before
    shutil.rmtree(FOLDER)
    refused("No space left", "appendix-b")
    assert not FOLDER.exists()


def test_fresh_names_the_stages_whose_code_has_changed_since_and_does_not_fail(capsys):
    cli.main(["publish", "all"])
    capsys.readouterr()
    fresh.main([])
    assert capsys.readouterr().out == ""
    write("src/lib/code.py", "x = 2\n")
    fresh.main([])
    out = capsys.readouterr().out
    assert (
        "published desk, appendix-b: the code of examples_train@mass, examples_train@nearest has changed since" in out
    )
    assert "beyond" not in out and "the page does not say so yet" in out
    assert fresh.refresh() and not fresh.refresh()
    (branch,) = (b for b in published.branches("desk") if b.name == "Appendix B")
    assert branch.changed == ["examples_train@mass", "examples_train@nearest"]
    fresh.main([])
    assert "does not say so yet" not in capsys.readouterr().out
    shutil.rmtree("src/lib")  # code that is gone has changed
    assert "appendix-b" in fresh.changed()["desk"]


def test_a_branch_names_a_commit_that_has_its_code():
    cli.main(["publish", "all"])
    assert fresh.untraced() == {}
    path = FOLDER / "about.json"
    about = json.loads(path.read_text())
    path.write_text(json.dumps(about | {"commit": 40 * "0"}))
    assert fresh.untraced() == {"desk/appendix-b": "commit 0000000 is not in this repository"}
    write("src/lib/code.py", "x = 3\n")
    run("git", "commit", "--quiet", "--all", "--message", "another loss")
    path.write_text(json.dumps(about | {"commit": (other := run("git", "rev-parse", "HEAD").strip())}))
    assert fresh.untraced() == {"desk/appendix-b": f"commit {other[:7]} has another src/lib"}


def test_what_is_published_can_be_traced(monkeypatch):
    monkeypatch.chdir(ROOT)
    if run("git", "rev-parse", "--is-shallow-repository").strip() == "true":
        pytest.skip("a clone without its history")
    assert fresh.untraced() == {}


def test_dvc_compares_a_published_profile_with_the_workspace(capsys):
    cli.main(["publish", "appendix-b"])
    run(
        "git",
        "stash",
        "--quiet",
        "--",
        "params.yaml",
        "dvc.lock",
        "reports/results",
        "reports/metrics",
        "reports/tables",
    )
    capsys.readouterr()
    cli.main(["revision", "desk"])
    revision = capsys.readouterr().out.strip()
    before = run("git", "status", "--porcelain")
    cli.main(["revision", "desk"])
    assert capsys.readouterr().out.strip() == revision and run("git", "status", "--porcelain") == before
    diff = json.loads(run(sys.executable, "-m", "dvc", "metrics", "diff", "--json", revision))
    assert diff == {"reports/metrics/summary.json": {"corr": {"old": 0.9, "new": 0.1, "diff": -0.8}}}
    diff = json.loads(run(sys.executable, "-m", "dvc", "params", "diff", "--json", revision))
    assert diff["params.yaml"]["examples.steps"] == {"old": 9, "new": 1, "diff": -8}
    table = run("git", "show", f"{revision}:reports/results/examples_table/examples.csv")
    assert "0.9" in table and "beyond_heads" in run("git", "ls-tree", "-r", "--name-only", revision)
    with pytest.raises(SystemExit, match="nothing of paper is published; desk is"):
        cli.main(["revision", "paper"])


# The project's own pipeline


def test_every_claim_metric_and_plot_belongs_to_one_branch():
    of = costs.branches(ROOT / "dvc.yaml")
    names = {branch: [n for n in of if of[n] == branch] for branch in of.values() if branch != publish.REPORT}
    for claim, row in read_criteria().items():
        assert sum(publish.of_branch(row, own) for own in names.values()) == 1, claim
    for stage, part in summary.PARTS.items():
        assert sum(stage in own for own in names.values()) == 1 and stage.startswith(part.__name__)
    begin = {part.__name__ for part in summary.PARTS.values()}
    plots = [out for s in pipeline.stages(ROOT) if s.name == "plots" for out in s.outs]
    files = [p.stem.partition("_")[0] for p in (ROOT / plots[0]).glob("*.csv")]
    assert set(files) <= begin
    assert len({costs.slug(branch) for branch in names}) == len(names)


def needed(names: list[str]) -> set[str]:
    """The scripts of stages and of all that they need."""
    all_, found, todo = {s.name: s for s in pipeline.stages(ROOT)}, set(), list(names)
    while todo:
        found.add(own := todo.pop())
        made = {n for n, s in all_.items() for out in s.outs if any(pipeline.covers(d, out) for d in all_[own].deps)}
        todo += made - found
    return {name.partition("@")[0] for name in found}


def found(evaluate, results: Path, row: dict):
    try:
        return evaluate(results, criterion(row))
    except Undecided as e:
        return str(e)


def test_a_claim_reads_nothing_but_its_branch_and_what_that_needs():
    """Otherwise a branch would be published with verdicts on another profile's results."""
    command = f"git -C {ROOT} archive HEAD reports/results | tar x"
    subprocess.run(command, shell=True, check=True)
    of = costs.branches(ROOT / "dvc.yaml")
    results = Path("reports/results")
    for branch in sorted(set(of.values()) - {publish.REPORT}):
        names = [s.name for s in pipeline.stages(ROOT) if of[s.name.partition("@")[0]] == branch]
        for folder in needed(names):
            if (source := results / folder).exists():
                shutil.copytree(source, Path(branch, folder))
        for claim, row in read_criteria().items():
            if publish.of_branch(row, names):
                assert found(EVALUATORS[claim], Path(branch), row) == found(EVALUATORS[claim], results, row), claim
