"""How a stage ended, what it sees of the worker's environment, and how its leash ends it."""

import os
import re
import subprocess
import sys

import psutil
import pytest

from attnrate.ops import leash, runner
from attnrate.schemas.all import Params
from attnrate.schemas.check import check
from tests.conftest import ROOT
from tests.schemas.test_check import with_value

FAILED = "ERROR: failed to reproduce 'a': failed to run: python stages/a.py, exited with "


@pytest.mark.parametrize(
    ("code", "text", "signal"),
    [
        (255, FAILED + "-9", "SIGKILL"),
        (255, FAILED + "137", "SIGKILL"),
        (255, FAILED + "143", "SIGTERM"),
        (255, FAILED + "1", ""),
        (255, FAILED + "2", ""),
        (255, f"a: interrupted, no out is half-written; `dvc repro` starts this stage again\n{FAILED}1", "SIGTERM"),
        (255, f"  exitcode  : -11 (pid: 7)\n{FAILED}1", "SIGSEGV"),
        (137, "", "SIGKILL"),  # DVC itself
        (1, "", ""),
    ],
)
def test_the_signal_that_ended_a_stage(code, text, signal):
    assert runner.ended_by(code, text) == signal


def test_a_stage_sees_its_gpus_alone(monkeypatch):
    """dask-cuda names the others too, after the worker's own."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,4,5,0")
    assert runner.environment(1)["CUDA_VISIBLE_DEVICES"] == "3"
    assert runner.environment()["CUDA_VISIBLE_DEVICES"] == "3,4,5,0"
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert "CUDA_VISIBLE_DEVICES" not in runner.environment(1)
    assert runner.environment()["ATTNRATE_WORKER"] == "1"


POLITE = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("told", flush=True), sys.exit(0)))
print("here", flush=True)
time.sleep(60)
"""
STUBBORN = (
    "import signal, time; signal.signal(15, lambda *_: None); print('here', flush=True)\nwhile True: time.sleep(1)"
)


def leashed(command: list[str], **options) -> subprocess.Popen:
    command = [sys.executable, leash.__file__, *command]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
    assert process.stdout.readline() == "here\n"
    return process


def test_a_leash_tells_a_process_before_it_kills():
    """srun passes SIGTERM on to its tasks; SIGKILL would leave them running."""
    with leashed([sys.executable, "-c", POLITE]) as process:
        process.stdin.close()
        assert process.stdout.read() == "told\n" and process.wait(60) == 1


def test_a_leash_kills_what_does_not_listen():
    """Also where the command itself is gone at once."""
    with leashed(["sh", "-c", '"$0" -c "$1" & wait', sys.executable, STUBBORN]) as process:
        (child,) = [p for p in psutil.Process(process.pid).children(recursive=True) if p.name() != "sh"]
        process.stdin.close()
        assert process.wait(leash.PATIENCE + 60) == 1 and not leash.lives(child)


SRUN = """
import os, signal, subprocess, sys, time
import psutil
options = [word for word in sys.argv[1:] if word.startswith("--")]
if [o.partition("=")[0] for o in options] != ["--ntasks", "--gpus", "--cpus-per-task", "--mem", "--exact"]:
    sys.exit(f"a step that would wait or share: {options}")
start = ["sh", "-c", '"$@" >&2 & echo $!', "sh", *sys.argv[1 + len(options):]]  # no child of ours: another machine's
task = psutil.Process(int(subprocess.check_output(start, start_new_session=True)))
signal.signal(signal.SIGTERM, lambda *_: task.terminate())
while task.is_running() and task.status() != psutil.STATUS_ZOMBIE:
    time.sleep(0.05)
"""


def test_the_documented_line_for_srun_is_run_and_ended_as_a_step(tmp_path, monkeypatch):
    """By a script of that name, whose task is nobody's child, as on another machine."""
    (line,) = re.findall(r"launch=(srun [^']+)'", (ROOT / "docs" / "cluster.md").read_text())
    check(Params, with_value("launch", line), "params.yaml")
    (tmp_path / "srun").write_text(f"#!{sys.executable}{SRUN}")
    (tmp_path / "srun").chmod(0o755)
    (tmp_path / "stage.py").write_text(f"import sys\nassert sys.argv[1:] == ['qk-1']\n{POLITE}")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    command = ["sh", "-c", f"{line} stage.py qk-1 2>&1"]  # as DVC runs it
    with leashed(command, cwd=tmp_path, env=runner.environment()) as process:
        process.stdin.close()
        assert process.stdout.read() == "told\n" and process.wait(60) == 1
