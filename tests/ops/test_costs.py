"""reports/costs.md: seconds and memory by stage and by branch."""

import json
import re
from pathlib import Path

import pytest

from attnrate.ops import costs, estimate, runlog, stages
from tests import pipeline
from tests.conftest import ROOT
from tests.ops.test_runlog import ON

DVC = "stages:\n" + "".join(
    f"  {name}:\n    cmd: x\n    meta: {{branch: {branch}}}\n"
    for name, branch in (("check", "report"), ("train", "Figure 1"), ("fig", "Figure 1"), ("page", "report"))
)
SECONDS = {"check": 6.0, "train@1": 60.0, "train@2": 90.0, "fig": 30.0, "page": 54.0, "gone@3": 999.0}


def cells(line: str) -> list[str]:
    return [cell.strip(" *") for cell in line.strip("|").split("|")]


def total(runs: dict) -> float:
    return sum(run["seconds"] for run in runs.values())


@pytest.fixture
def tree(in_scratch, monkeypatch):
    """A pipeline that has run; an estimate that costs nothing."""
    monkeypatch.setattr(costs, "estimate_paper", lambda runs: (f"paper: {total(runs):.0f}", {"hours": {"a": 1.0}}))
    monkeypatch.setattr("sys.argv", ["costs"])
    Path("dvc.yaml").write_text(DVC)
    Path("dvc.lock").write_text("stages:\n" + "".join(f"  {name}: {{cmd: x}}\n" for name in SECONDS))
    runs = [{"stage": n, "seconds": s, "peak_gb": s / 60, "on": ON} for n, s in SECONDS.items()]
    runlog.LOG.write_text("".join(json.dumps(run) + "\n" for run in runs))


def test_a_branch_sums_the_stages_whose_meta_names_it(tree):
    costs.main()
    text = costs.OUT.read_text()
    rows = {r[0]: r[1:] for r in map(cells, re.findall(r"^\|.*\|$", text, re.MULTILINE)) if len(r) == 4}
    assert rows["Figure 1"] == ["3", "3.0", "1.5"] and rows["report"] == ["2", "1.0", "0.9"]
    assert rows["all"] == ["5", "4.0", "1.5"] and list(rows).index("Figure 1") < list(rows).index("report")
    assert "| train@2 | 90.0 | 1.50 |" in text and "gone" not in text and "paper: 240" in text
    assert ON["processor"] in text and "imports included" in text


def test_nothing_is_estimated_anew_where_nothing_ran(tree, monkeypatch):
    costs.main()
    text = costs.OUT.read_text()
    assert costs.estimated() == {"hours": {"a": 1.0}}
    monkeypatch.setattr(costs, "estimate_paper", lambda runs: ("another estimate", {}))
    costs.main()
    assert costs.OUT.read_text() == text
    monkeypatch.setattr("sys.argv", ["costs", "--anew"])
    costs.main()
    assert "another estimate" in costs.OUT.read_text()


def test_without_a_run_it_says_so(tree):
    runlog.LOG.unlink()
    with pytest.raises(SystemExit, match="make repro"):
        costs.main()
    Path("dvc.lock").unlink()
    with pytest.raises(SystemExit, match="make repro"):
        costs.main()


def test_every_stage_has_a_branch():
    assert set(costs.branches(ROOT / "dvc.yaml")) - pipeline.NONE == {
        s.name.partition("@")[0] for s in pipeline.stages(ROOT)
    }


def test_the_plan_of_two_nodes():
    """Eight trainings of an hour behind one another's start; one worker does all in turn."""
    upstream = {"check": set(), **{f"run@{i}": {"check"} for i in range(8)}, "page": {f"run@{i}" for i in range(8)}}
    hours = dict.fromkeys(upstream, 1.0)
    found = costs.plans(upstream, {name for name in upstream if "@" in name}, hours)
    assert [plan["hours"] for plan in found] == [10, 10, 3, 3]
    assert "| 8 GPU, 8 CPU | 3 |" in costs.wall({"plans": found}) and "the longest chain | 3 |" in costs.wall(
        {"plans": found}
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inside DVC
def test_the_committed_estimate_has_every_stage_and_item_of_the_paper_profile():
    """What changes dvc.yaml or a profile's items says `make timings readme`, for the wall time in docs/cluster.md."""
    hours = json.loads((ROOT / "reports/costs.json").read_text())["hours"]
    _, paper = estimate.profiles(ROOT)
    assert set(hours) == set(stages.expanded(ROOT, paper.model_dump())[0])
