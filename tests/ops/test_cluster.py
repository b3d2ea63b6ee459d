"""The smoke profile's ViT trainings over real Dask workers, one of them killed; a failing stage; a missing resource."""

import json
import os
import subprocess
import sys
import time

import psutil
import pytest
import yaml
from distributed import Client, LocalCluster

from attnrate.core import params
from attnrate.ops import cluster, leash, runner
from tests import pipeline
from tests.conftest import ROOT, Workspace
from tests.robustness.undisturbed import smoke

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inside DVC
CLUSTER = ("python", "-m", "attnrate.ops.cluster")
COMMAND = "--wait-for-lock repro --single-item "
STAGES = {"validate", "vit_images", "vit_sweep@qk-1", "vit_sweep@width-2"}


def outs(space: Workspace, stages: set[str]) -> dict[str, bytes]:
    """Every file of the outs, and what dvc.lock says of the stages."""
    wanted = [s for s in pipeline.stages(space.path) if s.name in stages]
    paths = [space.path / out for s in wanted for out in s.outs]
    files = [f for p in paths for f in ([p] if p.is_file() else p.rglob("*")) if f.is_file()]
    lock = yaml.safe_load((space.path / "dvc.lock").read_text())["stages"]
    found = {str(f.relative_to(space.path)): f.read_bytes() for f in files}
    return found | {f"dvc.lock {s.name}": repr(lock[s.name]).encode() for s in wanted}


@pytest.fixture
def spaces(tmp_path):
    """Two copies of the tree whose sweep trains for some seconds."""
    longer = {"vit": {"grid": {"models": ["qk-1", "width-2"]}, "train": {"epochs": 50}}}
    return [smoke(tmp_path / name, longer) for name in ("cluster", "repro")]


def find(space, *words: str) -> psutil.Process:
    """The process of a stage's command in a workspace."""
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if line[1:2] == [words[0]] and {*words} <= {*line} and process.cwd() == str(space.path):
            return process
    raise AssertionError(f"{words} does not run")


@pytest.mark.slow
def test_a_killed_worker_changes_no_byte(spaces):
    space, plain = spaces
    driver = subprocess.Popen(
        [sys.executable, *CLUSTER[1:], "--workers", "2", "vit_sweep"],
        cwd=space.path,
        env=space.env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    end = time.monotonic() + 120
    while not list(space.path.glob(".scratch/checkpoints/vit_sweep-qk-1-*/*.safetensors")):
        assert driver.poll() is None and time.monotonic() < end, driver.stdout.read()
        time.sleep(0.02)
    stage = find(space, "stages/vit_sweep.py", "qk-1")
    above = stage.parents()
    table = json.loads((space.path / ".dvc/tmp/rwlock").read_text())
    assert any(entry["cmd"].endswith(COMMAND + "vit_sweep@qk-1") for entry in table["write"].values())
    worker = above[next(i for i, p in enumerate(above) if "leash.py" in " ".join(p.cmdline())) + 1]
    worker.kill()
    stage.wait(leash.PATIENCE + 10)  # it does not outlive its worker
    output, _ = driver.communicate(timeout=120)
    assert driver.returncode == 0, output
    assert "vit_sweep@qk-1: started again (" in output and output.count("started again") == 1
    assert all(f"{name}: done in" in output for name in STAGES) and "4 stages run, 0 up to date" in output

    assert "Running stage" not in space.ok("dvc", "repro", "vit_sweep")
    plain.ok("dvc", "repro", "vit_sweep")
    ours, theirs = outs(space, STAGES), outs(plain, STAGES)
    assert len(ours) > 2 * len(STAGES) and ours == theirs
    assert "0 stages run, 4 up to date" in space.ok(*CLUSTER, "--workers", "1", "vit_sweep")


@pytest.mark.slow
def test_a_failing_stage_stops_what_depends_on_it_alone(tmp_path):
    space = smoke(tmp_path / "space", {})
    space.edit("stages/linear_targets.py", "def main(p, to):\n", "def main(p, to):\n    raise SystemExit('no!')\n")
    code, output = space.run(*CLUSTER, "--workers", "2", "linear_rnn", "mixing_rank")
    assert code == 1 and "no!" in output and "Traceback" not in output
    assert "mixing_rank: done in" in output and "linear_rnn: started" not in output
    last = output.splitlines()[-1]
    assert "linear_targets failed" in last and last.endswith("not run because they depend on it: linear_rnn")


SCRIPT = """\
    import os, signal, time
    from pathlib import Path
    seen = Path("seen_STAGE")
    print("visible:", os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
    seen.write_text(seen.read_text() + "x" if seen.exists() else "x")
    if len(seen.read_text()) < TIMES:
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_stage_that_a_signal_ends_is_tried_again(tmp_path):
    """Twice, not for ever. Its lines can be read while it runs, and afterwards."""
    space = smoke(tmp_path / "space", {})
    for stage, times in (("linear_targets", 3), ("mixing_rank", 9)):
        body = SCRIPT.replace("TIMES", str(times)).replace("STAGE", stage)
        space.edit(f"stages/{stage}.py", "def main(p, to):\n", f"def main(p, to):\n{body}")
    code, output = space.run(*CLUSTER, "--workers", "1", "--live", "linear_targets", "mixing_rank")
    assert code == 1 and "linear_targets: done in" in output and "mixing_rank: done in" not in output, output
    for stage in ("linear_targets", "mixing_rank"):
        assert output.count(f"{stage}: ended by SIGKILL after") == 2, output
        assert output.count(f"[{stage}] visible:") == 3 and (space.path / f"seen_{stage}").read_text() == "xxx"
        assert "visible:" in (space.path / f".scratch/logs/{stage}.log").read_text()


@pytest.mark.slow
def test_a_worker_that_leaves_takes_its_stage_along(tmp_path):
    """As at the end of its --lifetime: the stage ends at once, before another worker may get it."""
    space = smoke(tmp_path / "space", {})
    wait = "def main(p, to):\n    import time\n    print('here', flush=True)\n    time.sleep(120)\n"
    space.edit("stages/linear_targets.py", "def main(p, to):\n", wait)
    job = runner.Job("linear_targets", space.path)
    log = space.path / runner.LOGS / "linear_targets.log"
    space.ok("dvc", "repro", "validate")
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as local,
        Client(local) as client,
    ):
        future = client.submit(runner.run_stage, job, pure=False)
        end = time.monotonic() + 60
        while not (log.exists() and "here" in log.read_text()):
            assert time.monotonic() < end
            time.sleep(0.1)
        stage = find(space, "stages/linear_targets.py")
        client.retire_workers(list(client.scheduler_info()["workers"]), close_workers=True)
        stage.wait(leash.PATIENCE + 10)
        future.cancel()


@pytest.mark.slow
def test_a_resource_that_no_worker_offers_is_named(tmp_path, capsys):
    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address=":0", resources={"CPU": 1}) as local,
        Client(local) as client,
    ):
        run = cluster.Run(client, tmp_path, {}, {"vit_sweep@qk-1"}, {}, patience=0)
        run.running = {
            client.submit(int, resources={"CPU": 1}): "vit_table",
            client.submit(abs, 1, resources={"GPU": 1}): "vit_sweep@qk-1",
        }
        run.check_resources()
        assert list(run.running.values()) == ["vit_table"] and run.failed == ["vit_sweep@qk-1"]
    assert "vit_sweep@qk-1: needs GPU, which none of 1 workers offered" in capsys.readouterr().out


def test_only_what_a_lost_worker_left_in_dvcs_table_is_removed(workspace):
    """Even if the number of its process is now another's: here, that of this test."""
    lost, other = ({"pid": os.getpid(), "cmd": f"dvc {COMMAND}{name}"} for name in ("mixing_rank", "equivariance"))
    table = workspace.path / ".dvc" / "tmp" / "rwlock"
    table.parent.mkdir(exist_ok=True)
    table.write_text(json.dumps({"write": {"/a": lost, "/b": other}, "read": {"/c": [lost, other], "/d": [lost]}}))
    runner.forget(workspace.path, f"{COMMAND}mixing_rank")
    assert json.loads(table.read_text()) == {"write": {"/b": other}, "read": {"/c": [other]}}


def test_an_unknown_stage_is_named(workspace, monkeypatch):
    monkeypatch.chdir(workspace.path)
    with pytest.raises(SystemExit, match="nonsense"):
        cluster.main(["nonsense"])


def test_what_meta_says_asks_for_a_gpu_in_the_paper_profile_alone(workspace, monkeypatch):
    monkeypatch.chdir(workspace.path)
    stages = pipeline.stages(workspace.path)
    upstream, gpu = cluster.plan(workspace.path, [], "paper")
    assert set(upstream) == {s.name for s in stages} and gpu == {s.name for s in stages if s.meta.get("gpu")}
    assert {"vit_sweep@qk-1", "translation_bleu"} <= gpu and not {"rates_train@paper", "vit_table"} & gpu
    assert cluster.plan(workspace.path, [], "laptop") == (upstream, set())
    run = cluster.Run(None, workspace.path, upstream, gpu, dict.fromkeys(upstream, 1.0))
    assert (run.need("vit_main@all"), run.need("vit_table")) == ("GPU", "CPU")


def test_what_reads_the_device_wants_a_gpu():
    """A worker for stages without one hides every GPU from them."""
    stages = pipeline.stages(ROOT)
    assert {s.name for s in stages if "device" in s.params} == {s.name for s in stages if s.meta.get("gpu")}


def test_the_paper_profile_is_refused_where_no_gpu_is(workspace, monkeypatch, nvidia):
    nvidia(driver="535.1", seen=0)
    monkeypatch.chdir(workspace.path)
    monkeypatch.setattr(cluster, "plan", lambda *_: ({"vit_main": set()}, {"vit_main"}))
    content = params.Group(profile="paper", threads=2, launch="python", device="cuda")
    monkeypatch.setattr(cluster.params, "read", lambda _: content)
    with pytest.raises(SystemExit, match=r"^cluster: the paper profile needs a GPU: driver 535.1 of 8 x NVIDIA"):
        cluster.main([])


class Ends:
    """Dask's client, whose next futures end so."""

    def __init__(self, *reasons: str):
        self.ends = [runner.Ended(1, "its last lines", "a:1", 1.0, again) for again in reasons]

    def submit(self, *_, **__):
        return self

    def result(self) -> runner.Ended:
        return self.ends.pop(0)


@pytest.mark.parametrize(
    ("reasons", "failed"),
    [
        ([runner.LEFT] * 9, False),
        (["SIGKILL", runner.LEFT, "SIGKILL", runner.LEFT, runner.LEFT], False),
        (["SIGKILL", runner.LEFT, "SIGKILL", runner.LEFT, "SIGKILL"], True),
        ([runner.LEFT, ""], True),
    ],
)
def test_a_lifetime_that_is_over_is_no_failure(tmp_path, capsys, reasons, failed):
    """A stage may outlast any number of them; what ends it by itself, or by signals, counts as before."""
    client = Ends(*reasons)
    run = cluster.Run(client, tmp_path, {"a": set()}, set(), {"a": 1.0})
    run.send("a")
    for _ in reasons:
        run.finish(client)
    assert run.failed == ["a"] * failed and list(run.running.values()) == ["a"] * (not failed)
    assert capsys.readouterr().out.count("again") == len(reasons) - failed


def test_a_target_brings_what_it_needs_and_no_more(workspace, monkeypatch):
    monkeypatch.chdir(workspace.path)
    upstream, _ = cluster.plan(workspace.path, ["vit_sweep"], "smoke")
    assert {name.partition("@")[0] for name in upstream} == {"validate", "vit_images", "vit_sweep"}
    assert upstream["vit_sweep@qk-1"] == {"vit_images"} and upstream["validate"] == set()
