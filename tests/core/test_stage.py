"""The run of a stage: flags, checks, log, and one line for whatever the user can put right."""

import errno
import json
import os
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from attnrate.core import files, record, stage
from attnrate.core.errors import UserError
from attnrate.schemas.vit import Vit
from tests.conftest import ROOT


@pytest.fixture
def command(monkeypatch):
    """Set the command line of the stage `demo`."""
    monkeypatch.delenv("DVC_STAGE", raising=False)

    def set_to(*args: str) -> None:
        monkeypatch.setattr(sys, "argv", ["stages/demo.py", *map(str, args)])

    return set_to


def test_flags_and_declared_parameters_reach_main(command, tmp_path):
    (tmp_path / "in.csv").touch()
    command("--params", ROOT / "params.yaml", "--table", "in.csv", "--width-out", "x.csv", "--recipe", "b")
    seen = {}
    stage.run(
        lambda cfg, args: seen.update(cfg=cfg, args=args),
        ("mh",),
        inputs=["table"],
        outs=["width_out"],
        flags={"recipe": ["a", "b"]},
    )
    assert set(type(seen["cfg"]).model_fields) == {"mh"}
    assert (str(seen["args"].width_out), seen["args"].recipe) == ("x.csv", "b")


def test_a_run_is_logged_under_the_stages_name(command, monkeypatch, capsys):
    command()
    stage.run(lambda cfg, args: None)
    monkeypatch.setenv("DVC_STAGE", "demo@one")
    stage.run(lambda cfg, args: None)
    runs = [json.loads(line) for line in stage.TIMINGS.read_text().splitlines()]
    assert [r["stage"] for r in runs] == ["demo", "demo@one"]
    assert all(r["seconds"] >= 0 and 0 < r["peak_gb"] < 64 for r in runs)
    assert capsys.readouterr().err.startswith("demo: 0.0 s")


@pytest.mark.parametrize("error", [UserError("mend it"), KeyboardInterrupt()])
def test_what_the_user_can_mend_ends_in_one_line_and_no_log(command, error):
    command()

    def main(cfg, args):
        raise error

    with pytest.raises(SystemExit) as e:
        stage.run(main)
    assert "demo: " in e.value.code and len(e.value.code.strip().splitlines()) == 1
    assert not stage.TIMINGS.exists()


def test_a_programming_error_keeps_its_traceback(command):
    command()

    def main(cfg, args):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stage.run(main)


def test_a_missing_input_is_named_before_anything_runs(command):
    command("--table", "nowhere.csv", "--out", "x")
    with pytest.raises(SystemExit, match=r"^demo: nowhere\.csv is missing; .*dvc repro demo"):
        stage.run(lambda cfg, args: pytest.fail("ran without its input"), inputs=["table"], outs=["out"])


@pytest.mark.parametrize("args", [[], ["--recipe", "c"], ["--recipe", "a", "--more", "1"]])
def test_a_wrong_command_line_is_refused(command, args, capsys):
    command(*args)
    with pytest.raises(SystemExit) as e:
        stage.run(lambda cfg, args: None, flags={"recipe": ["a", "b"]})
    assert e.value.code == 2 and "usage: " in capsys.readouterr().err


def test_threads_are_set_when_declared_and_only_then(command, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(stage, "_set_threads", seen.append)
    (tmp_path / "p.yaml").write_text("threads: 1\nmh: 4\n")
    command("--params", "p.yaml")
    stage.run(lambda cfg, args: None, ("mh",))
    assert seen == []
    stage.run(lambda cfg, args: None, ("mh", "threads"))
    assert seen == [1]


def test_a_full_disk_is_one_line(command):
    command()

    def main(cfg, args):
        raise OSError(errno.ENOSPC, "No space left on device", "reports/x.csv")

    with pytest.raises(SystemExit, match=r"^demo: reports/x\.csv: No space left on device; no out is half-written"):
        stage.run(main)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_says_how_to_go_on(command, number):
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    command()
    try:
        with pytest.raises(SystemExit, match=r"^demo: interrupted, .*`dvc repro` starts this stage again"):
            stage.run(lambda cfg, args: signal.raise_signal(number))
    finally:
        for n, handler in before.items():
            signal.signal(n, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_while_modules_are_imported_is_one_line(number, tmp_path):
    """At once and without an exception, which modules in C++ may turn into a crash."""
    script = "import bootstrap, time; print('importing', flush=True)\ntry: time.sleep(60)\nexcept BaseException: pass"
    (tmp_path / "demo.py").write_text(script)
    process = subprocess.Popen(
        [sys.executable, "demo.py"],
        env={k: v for k, v in os.environ.items() if k != "DVC_STAGE"} | {"PYTHONPATH": str(ROOT / "stages")},
        text=True,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout.readline() == "importing\n"
    process.send_signal(number)
    _, output = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert output == "demo: interrupted, nothing was begun; `dvc repro` starts this stage again\n"


def test_a_record_says_what_a_result_came_from(command):
    command("--params", ROOT / "params.yaml", "--out", "x.csv", "--record", "x.json", "--recipe", "a")
    stage.run(
        lambda cfg, args: None,
        ("profile", "threads", "vit.data", "vit.table_seeds"),
        {"vit": Vit},
        outs=["out", "record"],
        flags={"recipe": ["a", "b"]},
    )
    found = files.read_json("x.json")
    assert (found["stage"], found["profile"], found["data"]) == ("demo", "laptop", ["cifar10"])
    assert found["seeds"] == {"vit.table_seeds": [0, 1, 2]} and found["flags"] == {"recipe": "a"}
    assert found["packages"]["torch"] == version("torch") and found["device"]["threads"] == 2
    assert found["device"]["processor"] == record.processor()


def test_only_the_first_process_of_a_training_writes_record_and_log(command, monkeypatch):
    command("--params", ROOT / "params.yaml", "--record", "x.json")
    monkeypatch.setenv("RANK", "1")
    stage.run(lambda cfg, args: None, ("profile",), outs=["record"])
    assert not Path("x.json").exists() and not stage.TIMINGS.exists()
    monkeypatch.setenv("RANK", "0")
    stage.run(lambda cfg, args: None, ("profile",), outs=["record"])
    assert Path("x.json").exists() and files.read_json("x.json")["data"] == ["synthetic"]
