"""`--against`: refused before anything is measured, and loaded as the first model is."""

import shutil

import pytest
import timm
import torch
import transformers
from PIL import Image
from safetensors.torch import save_file

from attnrate import cli
from attnrate.tool import against
from tests.tool.test_spectrum import CONFIGS, LINES, draw, offline, save  # noqa: F401


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    save("bert", folder / "bert")
    for name, heads in (("heads", {"num_attention_heads": 4}), ("wide", {"hidden_size": 32})):
        config = transformers.BertConfig(**CONFIGS["bert"].to_dict() | heads)
        transformers.BertModel(config).save_pretrained(folder / name)
    save_file(timm.create_model("test_vit").state_dict(), folder / "w.safetensors")
    (folder / "file").write_text("no folder")
    (folder / "lines.txt").write_text("\n".join(LINES))
    return folder


@pytest.fixture
def models(made, tmp_path, monkeypatch):
    """A copy of them, where the test stands."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ("bert --random 2 --against nowhere.safetensors", "nowhere.safetensors: timm and torchvision have no such"),
        ("bert --random 2 --against w.safetensors", "a file of weights is for timm and torchvision models, and bert"),
        ("bert --random 2 --against heads", "--against heads: has 4 heads of size 4 where bert has 2 of 8"),
        ("bert --random 2 --against wide", "--against wide: has 2 heads of size 16 where bert has 2 of 8"),
        ("bert --random 2 --against test_vit", "this model takes images|has other layers"),
        ("bert --random 2 --out file/x", r"file/x: cannot be written \(.*\); name another folder"),
        ("bert --random 2 --out /proc/x/y", r"/proc/x/y: cannot be written \(.*\); name another folder"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_measured(models, monkeypatch, args, says):
    monkeypatch.setattr("attnrate.tool.spectrum.measure_all", lambda *_: pytest.fail("measured"))
    before = set(models.rglob("*"))
    with pytest.raises(SystemExit, match=says) as e:
        cli.main(["spectrum", *args.split(), *([] if "--out" in args else ["--out", "deep/out"])])
    assert "\n" not in e.value.code and set(models.rglob("*")) == before


def test_the_second_model_is_loaded_as_the_first(models, monkeypatch):
    seen = []
    monkeypatch.setattr(against, "load", lambda name, **options: seen.append((name, options)))
    against.second("test_vit2", "test_vit", {}, pretrained=True)
    against.second("org/b", "org/a", {}, revision="x")
    against.second("org/a", "org/a", {}, revision="x")
    against.second("bert", "org/a", {}, revision="x")
    against.second("w.safetensors", "test_vit", {}, pretrained=True)
    assert seen == [
        ("test_vit2", {"pretrained": True}),
        ("org/b", {"revision": "x"}),
        ("org/a", {"revision": None}),
        ("bert", {"revision": None}),
        ("test_vit", {"weights": "w.safetensors"}),
    ]


def test_the_summary_says_that_the_second_models_weights_are_random(models):
    cli.main(
        "spectrum test_vit --weights w.safetensors --random 2 --spectra scores --against test_vit --out out".split()
    )
    told = (models / "out" / "summary.md").read_text()
    assert "Beside it: test_vit, weights random, timm's initialisation, seed 0." in told


def test_a_bomb_is_an_image_that_cannot_be_read(models):
    draw(models / "pictures")
    Image.new("1", (20000, 20000)).save(models / "pictures" / "bomb.png")
    with pytest.raises(SystemExit, match=r"bomb\.png: cannot be read as an image .*bomb"):
        cli.main("spectrum test_vit --images pictures --out out".split())


@pytest.mark.parametrize("last", ["²", "99999999999999999999"])
def test_a_class_is_a_number(models, last):
    draw(models / "pictures")
    (models / "labels.txt").write_text(f"0\n1\n{last}\n")
    with pytest.raises(SystemExit, match=r"labels\.txt: should hold a class number a line"):
        cli.main("heads test_vit --images pictures --labels labels.txt --out out".split())


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA out of memory."), RuntimeError("DefaultCPUAllocator: can't allocate memory")]
)
def test_memory_that_runs_out_names_the_option(models, monkeypatch, error):
    def forward(*_, **__):
        raise error

    monkeypatch.setattr("timm.models.vision_transformer.VisionTransformer.forward", forward)
    for command in ("spectrum", "heads"):
        with pytest.raises(SystemExit, match=r"out of memory: fewer inputs at a time \(--batch, now 8\)"):
            cli.main([command, "test_vit", "--random", "2", "--out", "out"])
