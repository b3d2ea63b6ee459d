"""What preflight refuses, downloads and rehearses; hosts that misbehave are in test_rehearse.py."""

import shutil
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import timm

from attnrate.core import params
from attnrate.core.errors import UserError
from attnrate.ops import costs, preflight
from attnrate.ops.profile import overlay
from attnrate.schemas.all import Params
from attnrate.schemas.check import check
from attnrate.sources import cifar10, wmt14
from tests import pipeline
from tests.conftest import ROOT

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inside DVC


@pytest.fixture
def paper():
    path = ROOT / "profiles" / "paper.yaml"
    return overlay(params.read(ROOT / "params.yaml"), params.read(path), path)


@pytest.fixture(autouse=True)
def needs(monkeypatch):
    monkeypatch.setattr(
        costs, "estimated", lambda: {"disk": {"weights of the sweep": 39.0, "all else": 66.0}, "memory": 11.0}
    )


@pytest.mark.parametrize("free", [104e9, 106e9])
def test_a_disk_that_is_too_small_is_refused_with_what_it_is_for(monkeypatch, tmp_path, free):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    if free > 105e9:
        assert preflight.space(tmp_path) == "106 GB free, 105 GB needed (weights of the sweep 39, all else 66)"
    else:
        with pytest.raises(
            UserError, match=r"104 GB are free .* takes 105 GB \(weights of the sweep 39, all else 66\)"
        ):
            preflight.space(tmp_path)


def test_the_device_is_named_or_refused(nvidia):
    nvidia(seen=2)
    told = preflight.device(cpu=False)
    assert told.startswith("NVIDIA A100-SXM4-80GB (80 GB), NVIDIA A100") and "driver 580.65.06" in told
    nvidia(driver="535.1", seen=0)
    with pytest.raises(UserError, match=r"driver 535.1 of 8 x NVIDIA.*or `python -m attnrate.ops.preflight --cpu`"):
        preflight.device(cpu=False)
    assert preflight.device(cpu=True) == "none wanted"


def test_a_small_gpu_is_refused_with_what_to_raise(nvidia, monkeypatch):
    nvidia()
    monkeypatch.setattr(costs, "estimated", lambda: {"memory": 90.0})
    with pytest.raises(UserError, match=r"has 80 GB of memory, and the paper profile takes 90 GB; raise vit.train.acc"):
        preflight.device(cpu=False)


def test_everything_from_the_network_is_on_the_list(paper, monkeypatch):
    found = preflight.downloads(paper)
    names = {"CIFAR10", paper["vit"]["pretrained"]["name"], paper["vit"]["main"]["start"]}
    assert set(found) == {*names, *(a.name for a in wmt14.ARCHIVES)}
    asked = []

    def download(repo, file):
        asked.append((repo, file))
        return "/cache/models--timm--x/snapshots/0123abc/model.safetensors"

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    name = paper["vit"]["main"]["start"]
    assert found[name]() == "revision 0123abc" and asked == [(f"timm/{name}", "model.safetensors")]
    assert timm.is_model(name)
    none = {"name": "toy", "start": "scratch"}
    toy = {"vit": {"data": none, "main": none, "sweep": none, "pretrained": none}}
    assert preflight.downloads(toy | {"translation": {"data": {"corpus": "toy"}}}) == {}


def test_every_download_is_tried_and_one_message_has_all_that_failed(capsys):
    def fails():
        raise OSError("no route\n to host")

    with pytest.raises(
        UserError, match=r"2 of 3 downloads failed; what arrived is kept.*\n  a: no route to host\n  c: no"
    ):
        preflight.fetch({"a": fails, "b": lambda: "here", "c": fails})
    assert "preflight: b: here, 0 s" in capsys.readouterr().out


@pytest.mark.parametrize("cpu", [True, False])
def test_the_two_steps_are_of_the_profiles_own_data_and_batches(paper, cpu):
    content = preflight.two_steps(ROOT, paper, cpu)
    check(Params, content, "preflight")
    assert content["vit"]["data"] == paper["vit"]["data"] and content["vit"]["main"]["start"] != "scratch"
    assert content["vit"]["train"]["max_steps"] == content["translation"]["train"]["max_steps"] == 2
    assert content["vit"]["model"] == paper["vit"]["model"]
    same = content["vit"]["train"]["batch"] == paper["vit"]["train"]["batch"]
    assert same is not cpu
    if not cpu:
        assert content["translation"]["train"]["batch_tokens"] == paper["translation"]["train"]["batch_tokens"]
        assert content["vit"]["images"]["train"] >= 2 * content["vit"]["train"]["batch"]


@pytest.mark.parametrize("code", [0, 1])
def test_the_two_steps_run_in_a_copy_that_finds_the_downloads(workspace, paper, monkeypatch, code):
    monkeypatch.chdir(workspace.path)
    paper["translation"]["data"]["corpus"] = "toy"  # no archives here
    (workspace.path / cifar10.CACHE).mkdir(parents=True, exist_ok=True)
    (workspace.path / cifar10.CACHE / "an archive").touch()
    seen = {}

    def run(command, cwd, env):
        seen.update(stages=command[3:], params=params.read(cwd / "params.yaml"), offline=env["HF_HUB_OFFLINE"])
        assert (cwd / cifar10.CACHE / "an archive").exists() and cwd != workspace.path
        return SimpleNamespace(returncode=code)

    monkeypatch.setattr(preflight, "subprocess", SimpleNamespace(run=run))
    with pytest.raises(UserError, match="first two steps") if code else nullcontext():
        preflight.practise(workspace.path, paper, cpu=True)
    assert (seen["params"].profile, seen["params"].device, seen["offline"]) == ("paper", "cpu", "1")
    named = {name.partition("@")[0] for name in seen["stages"]}
    assert named == {s.name.partition("@")[0] for s in pipeline.stages(ROOT) if s.meta.get("gpu")}


def test_it_ends_at_the_first_thing_that_is_wrong(nvidia, monkeypatch):
    nvidia(driver="535.1", seen=0)
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(preflight, "fetch", lambda _: pytest.fail("nothing is downloaded for a GPU that is not there"))
    with pytest.raises(SystemExit, match=r"^preflight: the paper profile needs a GPU: driver 535.1"):
        preflight.main(["paper"])
