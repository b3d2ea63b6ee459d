"""`attnrate spectrum`: a mistake costs a line and writes nothing."""

import pytest
import timm
import torch
import transformers
from safetensors.torch import save_file

from attnrate import cli
from tests.tool.test_spectrum import CONFIGS, LINES, draw, offline, save  # noqa: F401


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Things a user might give, each wrong in one way."""
    tmp_path = tmp_path_factory.mktemp("mistakes")
    draw(tmp_path / "pictures")
    (tmp_path / "lines.txt").write_text("\n".join(LINES))
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    for name in "ab":
        (tmp_path / "broken" / f"{name}.png").write_text("not an image")
    (tmp_path / "one.txt").write_text("a b c\n\n")
    (tmp_path / "latin.txt").write_bytes(b"\xe4\n\xf6\n")
    (tmp_path / "bad.safetensors").write_text("no")
    save_file({"x": torch.zeros(2)}, tmp_path / "other.safetensors")
    wide = timm.create_model("test_vit", num_classes=3).state_dict()
    save_file(wide | {"blocks.0.attn.qkv.weight": torch.zeros(3, 4)}, tmp_path / "shape.safetensors")
    save("bert", tmp_path / "bert")
    save("bert", tmp_path / "lacking")
    weights = dict(transformers.BertForMaskedLM.from_pretrained(tmp_path / "bert").state_dict())
    del weights["bert.encoder.layer.0.attention.self.key.weight"]
    save_file({k: v.clone() for k, v in weights.items()}, tmp_path / "lacking" / "model.safetensors", {"format": "pt"})
    config = CONFIGS["bert"].to_dict() | {"num_hidden_layers": 3}
    transformers.BertModel(transformers.BertConfig(**config)).save_pretrained(tmp_path / "deeper")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    return tmp_path


@pytest.fixture
def mistakes(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (
            "vit_base_patch16_225 --random 2",
            r"vit_base_patch16_225: timm and torchvision have no such model \(did you mean vit_base_patch16_224",
        ),
        ("vit_base_patch16_225 --random 2 --pretrained", "are for timm and torchvision models, and timm and"),
        (
            "no/such/folder --random 2",
            "no/such/folder: timm and torchvision have no such model, and transformers' AutoConfig cannot load it",
        ),
        ("empty --random 2", "empty: transformers' AutoConfig cannot load it"),
        ("test_vit --images nowhere", "nowhere: no such folder of images"),
        ("test_vit --images empty", "empty: holds 0 images"),
        ("test_vit --images broken", r"a\.png: cannot be read as an image"),
        ("test_vit --text lines.txt", "takes images: give --images or --random"),
        ("bert --images pictures", "takes texts: give --text or --random"),
        ("bert --text nowhere.txt", r"nowhere\.txt: cannot be read as a text file"),
        ("bert --text latin.txt", r"latin\.txt: cannot be read as a text file"),
        ("bert --text one.txt", r"one\.txt: holds 1 lines with text; two are needed"),
        (
            "test_vit --random 2 --weights nowhere.safetensors",
            r"nowhere\.safetensors: cannot be read as a safetensors file",
        ),
        ("test_vit --random 2 --weights bad.safetensors", r"bad\.safetensors: cannot be read as a safetensors file"),
        (
            "test_vit --random 2 --weights other.safetensors",
            r"other\.safetensors: these are not the weights of test_vit",
        ),
        ("test_vit --random 2 --weights shape.safetensors", "these are not the weights of test_vit .*size mismatch"),
        (
            "lacking --random 2",
            r"lacking: its weights lack encoder\.layer\.0\.attention\.self\.key\.weight \(1 in all\)",
        ),
        ("test_resnet --random 2", "no attention that can be seen"),
        ("test_vit --random 2 --device cuda:7", "--device cuda:7: PyTorch has no such device here"),
        ("bert --random 2 --against empty", "empty: transformers' AutoConfig cannot load it"),
        ("bert --random 2 --against deeper", r"--against deeper: has other layers \(3 of them\) than bert"),
        ("test_vit", "give one kind of inputs"),
        ("test_vit --random 2 --images pictures", "give one kind of inputs"),
        ("test_vit --random 1", "--random 1: should be 2 or more"),
        ("test_vit --random 2 --out mine", r"mine: is not empty \(it holds thesis\.txt\)"),
        ("test_vit --random 2 --out one.txt", r"one\.txt: is a file"),
    ],
)
def test_a_mistake_costs_one_line_and_writes_nothing(mistakes, args, says):
    before = {p: p.read_bytes() for p in mistakes.rglob("*") if p.is_file()}
    words = args.split()
    with pytest.raises(SystemExit, match=says) as e:
        cli.main(["spectrum", *words, *([] if "--out" in words else ["--out", "out"])])
    assert isinstance(e.value.code, str) and "\n" not in e.value.code
    assert {p: p.read_bytes() for p in mistakes.rglob("*") if p.is_file()} == before
    assert not (mistakes / "out").exists() and not (mistakes / ".scratch").exists()
