"""`attnrate judge`: published results by today's criteria."""

import shutil
from pathlib import Path

import pytest

from attnrate import cli
from attnrate.report import published
from attnrate.report.claims import ledger
from tests.conftest import ROOT

PROFILES = [name for name in published.SIZES if published.branches(name, ROOT / published.ROOT)]


@pytest.fixture(autouse=True)
def tree(tmp_path, monkeypatch):
    """What is committed, where it may be written."""
    shutil.copytree(ROOT / published.ROOT, tmp_path / published.ROOT)
    shutil.copyfile(ROOT / "params.yaml", tmp_path / "params.yaml")
    monkeypatch.chdir(tmp_path)


def claims() -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(published.ROOT.rglob("claims.json"))}


@pytest.mark.parametrize("profile", PROFILES)
def test_committed_verdicts_are_by_todays_criteria(profile, capsys):
    before = claims()
    cli.main(["judge", profile])
    assert capsys.readouterr().out == "no verdict moved\n" and claims() == before


def test_a_new_criterion_moves_a_verdict_and_leaves_the_other_branches(monkeypatch, capsys):
    criteria, before = ledger.read_criteria(), claims()
    criteria["rate-network"] |= {"margin": 0.1}
    monkeypatch.setattr(ledger, "read_criteria", lambda: criteria)
    cli.main(["judge", "desk"])
    assert capsys.readouterr().out == "Figure 1: rate-network, undecided → reproduced\n"
    assert [path.parent.name for path, content in claims().items() if content != before[path]] == ["figure-1"]


def test_results_of_another_branch_that_a_claim_reads_are_asked_for():
    shutil.rmtree(published.ROOT / "desk/tables-2-and-3")
    before = claims()
    with pytest.raises(SystemExit, match=r"linear_train/centred/errors.csv is not published"):
        cli.main(["judge", "desk"])
    assert claims() == before


def test_a_profile_without_results_is_refused():
    with pytest.raises(SystemExit, match=r"^attnrate judge: nothing of smoke is published$"):
        cli.main(["judge", "smoke"])
