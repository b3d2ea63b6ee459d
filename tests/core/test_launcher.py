"""stages/launcher.py around a real process: a line for what the user can mend, a log of what went well."""

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.conftest import ROOT

SCRIPT = """
import launcher  # noqa: F401

{imports}

from attnrate.core import files, stage
from attnrate.core.errors import UserError


def main(p, to):
    (to.results / "half").write_text("1")
    (to.data / "half").write_text("2")
    {body}


if __name__ == "__main__":
    stage.run(main)
"""
WAIT = "import time; print('here', flush=True); time.sleep(60)"
STOPS = [signal.SIGINT, signal.SIGTERM]
OUTS = (Path("reports/results/demo"), Path("data/demo"))
LOG = Path(".runs.jsonl")


@dataclass
class Ended:
    code: int
    stdout: str
    stderr: str

    @property
    def line(self) -> str:
        """What it said, which is one line after its name."""
        (line,) = self.stderr.strip().splitlines()
        name, _, text = line.partition(": ")
        assert name == "demo", self.stderr
        return text

    def failed(self) -> "Ended":
        """It did, without a trace on the disk or on the screen."""
        assert self.code != 0 and "Traceback" not in self.stderr
        assert not any(out.exists() for out in OUTS) and not LOG.exists() and not list(Path(".scratch").glob("*"))
        return self


@pytest.fixture
def stage():
    """Run a stage `demo` with that body, in a tree of its own; `send` a signal once it says that it is here."""
    Path("stages").mkdir()
    shutil.copy(ROOT / "stages" / "launcher.py", "stages")
    Path("src").symlink_to(ROOT / "src")
    Path("params.yaml").write_text("mh: 4\n")

    def run(body="pass", imports="", words=(), send=None, before=signal.SIG_DFL, **env) -> Ended:
        Path("stages/demo.py").write_text(SCRIPT.format(imports=imports, body=body))
        clean = {k: v for k, v in os.environ.items() if k not in ("DVC_STAGE", "PYTHONPATH", "RANK", "ATTNRATE_WORKER")}
        process = subprocess.Popen(
            [sys.executable, "stages/demo.py", *words],
            env=clean | env,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, before),  # pytest may run in the background
        )
        said = process.stdout.readline() if send else ""
        if send:
            process.send_signal(send)
        rest, stderr = process.communicate(timeout=120)
        return Ended(process.returncode, said + rest, stderr)

    return run


def runs():
    return [json.loads(line) for line in LOG.read_text().splitlines()]


# Success --------------------------------------------------------------------------------------------------------------


def test_a_success_is_logged_with_what_it_took_and_ran_on(stage):
    done = stage("print(p.mh)", imports="import torch; torch.set_num_threads(1)")
    assert (done.code, done.stdout.split()) == (0, ["4"]) and "s, " in done.line and "GB peak" in done.line
    assert all((out / "half").exists() for out in OUTS) and not list(Path(".scratch").iterdir())
    (run,) = runs()
    assert run["stage"] == "demo" and run["seconds"] > 0 and 0 < run["peak_gb"] < 64
    assert run["on"]["packages"]["torch"] == version("torch") and "timm" not in run["on"]["packages"]
    assert run["on"]["threads"] == 1 and run["on"]["processor"]
    assert stage().code == 0
    assert len(runs()) == 2 and "torch" not in runs()[1]["on"]["packages"], "a second run appends"


@pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64", reason="elsewhere they are kept")
def test_numbers_below_the_normal_ones_are_zero_in_all_that_a_stage_starts(stage):
    """Their products are slow on some CPUs; all others are as they were."""
    imports = "import os, threading, numpy as np"
    body = (
        "tiny = lambda: print(np.float32(1e-30) * np.float32(1e-10), np.float32(1e-30) * np.float32(1e-7), flush=True)"
        "; tiny(); own = threading.Thread(target=tiny); own.start(); own.join()"
        "; child = os.fork(); child or (tiny(), os._exit(0)); os.waitpid(child, 0)"
    )
    assert stage(body, imports).stdout.splitlines().count("0.0 1e-37") == 3


def test_seconds_count_the_imports_too(stage):
    stage("time.sleep(0.1)", imports="import time; time.sleep(0.5)")
    assert runs()[0]["seconds"] >= 0.6


def test_a_run_bears_the_name_that_dvc_gives_it(stage):
    done = stage(DVC_STAGE="demo@one")
    assert runs()[0]["stage"] == "demo@one" and done.stderr.startswith("demo@one: ")


def test_the_library_is_that_of_the_tree_the_stage_stands_in(stage):
    assert Path(stage("print(files.__file__)").stdout.strip()) == Path("src/attnrate/core/files.py").absolute()


@pytest.mark.parametrize(("rank", "logged"), [("0", True), ("1", False)])
def test_of_several_processes_the_first_one_logs(stage, rank, logged):
    done = stage(RANK=rank)
    assert done.code == 0 and LOG.exists() == logged and bool(done.stderr) == logged


# A GPU that is not there ----------------------------------------------------------------------------------------------


def test_with_device_cuda_no_stage_begins_without_a_gpu(stage):
    Path("params.yaml").write_text("mh: 4\ndevice: cuda\n")
    refused = stage("print('begun', flush=True)", CUDA_VISIBLE_DEVICES="").failed()
    assert refused.line.startswith("the paper profile needs a GPU: ") and not refused.stdout


@pytest.mark.parametrize(
    ("device", "env"),
    [
        ("cuda", {"DVC_STAGE": "validate"}),
        ("cuda", {"ATTNRATE_WORKER": "1"}),  # of a cluster, whose GPUs are elsewhere
        ("auto", {}),
        ("cpu", {}),
    ],
)
def test_what_needs_no_gpu_begins(stage, device, env):
    """And waits for no PyTorch."""
    Path("params.yaml").write_text(f"mh: 4\ndevice: {device}\n")
    done = stage("import sys; print('torch' in sys.modules)", CUDA_VISIBLE_DEVICES="", **env)
    assert (done.code, done.stdout.split()) == (0, ["False"]), done.stderr


# What the user can mend -----------------------------------------------------------------------------------------------

FULL = "raise OSError(28, 'No space left on device', 'reports/x.csv')"
LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); "


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("raise UserError('mend it')", "mend it"),
        ("open('data/nowhere.csv')", "data/nowhere.csv is missing; `dvc repro demo` makes it"),
        (FULL, "reports/x.csv: No space left on device; no out is half-written"),
        (LIMITED + "(to.data / 'w').write_text('x' * 2000)", "data/demo: File too large; no out is half-written"),
        (LIMITED + "files.write_text(to.results / 'w', 'x' * 2000)", "reports/results/demo: File too large; no out"),
        ("bytearray(2**62)", "out of memory"),
    ],
)
def test_a_failure_is_one_line_and_leaves_nothing(stage, body, says):
    assert stage(body).failed().line.startswith(says)


@pytest.mark.parametrize(("body", "error"), [("1 / 0", "ZeroDivisionError"), ("p.height", "no height among mh")])
def test_an_error_that_is_ours_keeps_its_traceback(stage, body, error):
    done = stage(body)
    assert done.code != 0 and done.stderr.startswith("Traceback") and error in done.stderr
    assert f"    {body}\n" in done.stderr
    assert not any(out.exists() for out in OUTS) and not LOG.exists() and not list(Path(".scratch").iterdir())


def test_an_exit_code_of_its_own_is_kept_and_nothing_is_moved_into_place(stage):
    assert stage("raise SystemExit(3)").code == 3
    assert not any(out.exists() for out in OUTS)


def test_an_error_during_imports_keeps_its_traceback_too(stage):
    done = stage(imports="import nothing_of_that_name")
    assert done.code != 0 and "ModuleNotFoundError" in done.stderr and not LOG.exists()


def test_a_wrong_number_of_words_is_a_usage_line(stage):
    assert stage(words=["qk"]).failed().line == "usage: python stages/demo.py"


def test_parameters_that_cannot_be_read_are_one_line(stage):
    Path("params.yaml").write_text("mh: [1")
    assert stage().failed().line.startswith("params.yaml: is not valid YAML")


@pytest.mark.parametrize("rank", ["0", "1"])
def test_a_process_of_several_that_fails_says_so_and_is_not_logged(stage, rank):
    assert stage("raise UserError('mend it')", RANK=rank).failed().line == "mend it"


# Stops ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", STOPS)
def test_a_stop_is_one_line_that_says_how_to_go_on(stage, number):
    done = stage(WAIT, send=number).failed()
    assert done.line.startswith("interrupted, no out is half-written; `dvc repro` starts this stage again")


@pytest.mark.parametrize("number", STOPS)
def test_a_stop_of_a_training_says_that_it_goes_on(stage, number):
    body = f"with kept('demo', {{}}, []) as folder: (folder / 'a.safetensors').touch(); {WAIT}"
    done = stage(body, imports="from attnrate.large.checkpoint import kept", send=number)
    assert done.code != 0 and "goes on from the last checkpoint, in .scratch/checkpoints/demo-" in done.line
    assert not any(out.exists() for out in OUTS) and len(list(Path(".scratch").glob("checkpoints/*/*"))) == 1


@pytest.mark.parametrize("number", STOPS)
def test_a_stop_during_imports_is_one_line_at_once(stage, number):
    """Without an exception, which modules in C++ may turn into a crash, and which this module would swallow."""
    Path("stages/slow.py").write_text(f"try:\n    {WAIT}\nexcept BaseException:\n    pass\n")
    done = stage(imports="import slow  # noqa: F401", send=number).failed()
    assert done.code == 128 + number and done.line.startswith("interrupted, nothing was begun; `dvc repro`")


def test_a_stage_in_a_shells_background_goes_on_after_ctrl_c(stage):
    done = stage(WAIT.replace("60", "0.5"), send=signal.SIGINT, before=signal.SIG_IGN)
    assert done.code == 0 and len(runs()) == 1
