"""How a stage ended, and what it sees of the worker's environment."""

import pytest

from attnrate.ops import runner

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
