"""The run log, and what of it is kept in git."""

import json
from pathlib import Path

import pytest

from attnrate.core import files
from attnrate.ops import runlog

ON = {"system": "Linux x86_64", "processor": "one", "python": "3.11", "packages": {"numpy": "2"}}


def lock(**stages: str) -> None:
    """A dvc.lock whose stages have an out of that hash each."""
    lines = [f"  {name}:\n    outs:\n    - {{path: data/{name}, md5: '{md5}'}}\n" for name, md5 in stages.items()]
    Path("dvc.lock").write_text("stages:\n" + "".join(lines))


def log(*runs: dict) -> None:
    runlog.LOG.write_text("".join(json.dumps({"peak_gb": 1.0, "on": ON, "params": ""} | run) + "\n" for run in runs))


@pytest.fixture(autouse=True)
def three_stages(in_scratch):
    lock(a="1", b="2", c="3")
    log({"stage": "a", "seconds": 1.0}, {"stage": "b", "seconds": 2.0}, {"stage": "a", "seconds": 3.0})


def test_append_adds_a_run_that_latest_finds(capsys):
    runlog.append("a", 7.26)
    runlog.append("d", 8.0)
    assert runlog.latest()["a"]["seconds"] == 7.3 and runlog.latest()["b"]["seconds"] == 2.0
    run = runlog.latest()["d"]
    assert run["peak_gb"] > 0 and run["on"]["processor"] and "numpy" in run["on"]["packages"]
    assert "a: 7.3 s" in capsys.readouterr().err


def test_the_last_run_of_each_stage_of_dvc_lock_is_kept():
    log(*({"stage": s, "seconds": 1.0} for s in ("a", "gone")), {"stage": "a", "seconds": 3.0})
    assert list(runlog.keep()) == ["a"]
    assert runlog.kept()["a"] == {"seconds": 3.0, "peak_gb": 1.0, "on": ON, "outs": runlog.digests()["a"]}


def test_runs_of_other_machines_stay_and_machines_stand_once():
    runlog.keep()
    log({"stage": "c", "seconds": 9.0, "on": ON | {"processor": "two"}})
    runlog.keep()
    assert {name: run["on"]["processor"] for name, run in runlog.kept().items()} == {"a": "one", "b": "one", "c": "two"}
    assert len(files.read_json(runlog.KEPT)["machines"]) == 2


def test_a_run_of_outs_that_changed_is_recognised_as_old():
    """As after a pull of somebody's dvc.lock: the log of this machine knows nothing of it."""
    runlog.keep()
    runlog.LOG.unlink()
    lock(a="other", b="2", c="3")
    runlog.keep()
    kept, now = runlog.kept(), runlog.digests()
    assert kept["a"]["outs"] != now["a"] and kept["b"]["outs"] == now["b"]
    assert runlog.kept() == kept


def test_an_experiment_that_was_put_back_replaces_no_kept_run():
    Path("params.yaml").write_text("mh: 32\n")
    runlog.append("a", 5.0)
    runlog.keep()
    Path("params.yaml").write_text("mh: 8\n")
    runlog.append("a", 6.0)
    assert runlog.last()["a"]["seconds"] == 6.0  # while its parameters stand
    Path("params.yaml").write_text("mh: 32\n")
    assert runlog.last()["a"]["seconds"] == 5.0
    lock(a="other", b="2", c="3")
    assert runlog.last()["a"]["seconds"] == 6.0  # no kept run made these outs


def test_the_digest_depends_on_every_out():
    text = "stages:\n  a:\n    outs:\n    - {path: x, md5: '1'}\n    - {path: y, md5: '2'}\n"
    found = set()
    for change in (("", ""), ("'1'", "'3'"), ("'2'", "'3'"), ("y,", "z,")):
        Path("dvc.lock").write_text(text.replace(*change) if change[0] else text)
        found.add(runlog.digests()["a"])
    assert len(found) == 4


def test_without_a_log_nothing_is_known():
    runlog.LOG.unlink()
    assert runlog.latest() == {} and runlog.keep() == {} and runlog.kept() == {}
