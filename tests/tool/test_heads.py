"""`attnrate heads` on the command line."""

import json

import pandas as pd
import pytest
import timm
import torch
import transformers
from safetensors.torch import save_file
from torchvision.models import vision_transformer

from attnrate import cli
from attnrate.cut.advice import advise
from attnrate.tool.heads import CUT, OUTS
from attnrate.tool.spectrum import AGAINST, spectrum
from attnrate.tool.spectrum import OUTS as SPECTRUM
from tests.tool.test_spectrum import LINES, draw, offline, save  # noqa: F401


@torch.no_grad()
def strong(path, classes: int = 2) -> None:
    """Weights of a ViT whose attention matters, and which says class 0."""
    torch.manual_seed(0)
    model = timm.create_model("test_vit", num_classes=classes)
    for name, weight in model.named_parameters():
        weight.add_(torch.randn(weight.shape), alpha=0.3 if "qkv" in name else 0.1)
    model.head.bias.copy_(-3.0 * torch.arange(classes))
    save_file(model.state_dict(), path)


def test_images_with_labels_and_an_export(tmp_path, capsys):
    for name in ("0", "1"):
        (tmp_path / "pictures").mkdir(exist_ok=True)
        draw(tmp_path / "pictures" / name)
    (tmp_path / "labels.txt").write_text("0\n" * 6)
    strong(tmp_path / "vit.safetensors")
    args = (
        "heads test_vit --weights vit.safetensors --images pictures --labels labels.txt --sizes 2 8 --export --out out"
    )
    cli.main(args.split())
    assert {p.name for p in (tmp_path / "out").iterdir()} == OUTS
    captured = capsys.readouterr()
    assert captured.out.strip() == "out/summary.md" and "forward passes over 6 inputs, about" in captured.err
    before = {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()}
    cli.main(args.split())
    assert {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()} == before
    record = json.loads(before["advice.json"])
    assert record["sizes"] == [2, 8, 32] and record["loss"] == "accuracy, drop" and len(record["advised"]) == 6
    assert record["export"]["difference"] < 1e-4 and record["export"]["bytes"] == len(before[CUT])
    errors = pd.read_csv(tmp_path / "out" / "errors.csv")
    assert len(errors) == 3 * 3 * (1 + 6) + 3 and (errors.n == 6).all()
    assert (errors.accuracy * 6 % 1 < 1e-4).all()
    assert "of 32** is the least head size" in before["summary.md"].decode()


def test_texts_are_a_language_models_own_labels(tmp_path):
    save("gpt2", tmp_path / "gpt2")
    lines = [LINES[0], LINES[2], "a b", "b c d e f"]
    (tmp_path / "lines.txt").write_text("\n".join(lines))
    cli.main("heads gpt2 --text lines.txt --sizes 2 --out out".split())
    record = json.loads((tmp_path / "out" / "advice.json").read_text())
    assert record["loss"].startswith("cross-entropy") and record["savings"][0]["key_cache"]["of"] == 2 * 2 * 8 * 4
    errors = pd.read_csv(tmp_path / "out" / "errors.csv")
    model = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "gpt2")
    words = "[PAD] [UNK] [CLS] a b c d e f g h".split()
    with torch.no_grad():
        rows = [torch.tensor([[words.index(w) for w in line.split()]]) for line in lines]
        wanted = sum(model(ids, labels=ids).loss.item() for ids in rows) / 4
    assert errors[errors.mh == 8].loss.to_numpy() == pytest.approx(wanted, rel=1e-4)


def test_a_pair_of_encoder_and_decoder_takes_targets(tmp_path):
    save("marian", tmp_path / "marian")
    (tmp_path / "lines.txt").write_text("a b c\nd e f\ng h a\n")
    (tmp_path / "after.txt").write_text("c b\nf e\na h\n")
    cli.main("heads marian --text lines.txt --targets after.txt --sizes 4 --out out".split())
    record = json.loads((tmp_path / "out" / "advice.json").read_text())
    assert [layer["kind"] for layer in record["layers"]] == ["self", "self", "causal", "cross"]
    assert not any("given the input itself" in note for note in record["notes"])


def test_torchvision_and_a_second_checkpoint(tmp_path):
    """Trained against untrained, in half precision of another kind too."""
    cli.main("spectrum swin_t --random 2 --spectra scores --out out".split())
    kinds = json.loads((tmp_path / "out" / "provenance.json").read_text())["kinds"]
    assert len(kinds) == 12 and set(kinds) == {"self, windows", "self"}
    save("bert", tmp_path / "bert")
    (tmp_path / "lines.txt").write_text("\n".join(LINES))
    cli.main("spectrum bert --text lines.txt --against untrained --out against".split())
    assert {p.name for p in (tmp_path / "against").iterdir()} == SPECTRUM | AGAINST
    one, two = (pd.read_csv(tmp_path / "against" / f"{n}ranks.csv") for n in ("", "against_"))
    assert list(one.columns) == list(two.columns) and not one.equals(two)
    assert list(one.spectrum.unique()) == ["scores", "centred", "softmax"]
    half = spectrum("bert", "half", text="lines.txt", dtype="bfloat16", which=["scores"])
    assert half.ranks.effective.to_numpy() == pytest.approx(one[one.spectrum == "scores"].effective, rel=0.1)


def test_a_loss_that_sees_nothing_gives_no_advice(tmp_path):
    """torchvision's untrained ViT has a last layer of zeros, whose loss any heads keep."""
    torch.manual_seed(0)
    model = vision_transformer.VisionTransformer(8, 4, 2, 2, 16, 16, num_classes=3)
    assert advise(model, [torch.randn(3, 3, 8, 8)], sizes=[2]).blind
    torch.nn.init.normal_(model.heads.head.weight)
    assert not advise(model, [torch.randn(3, 3, 8, 8)], sizes=[2]).blind


def test_random_weights_are_named_and_give_no_advice(tmp_path):
    cli.main("heads test_vit --random 4 --sizes 1 --out out".split())
    record = json.loads((tmp_path / "out" / "advice.json").read_text())
    assert sum("weights are random" in note for note in record["notes"]) == 1
    assert "**No size is advised**" in (tmp_path / "out" / "summary.md").read_text()


def test_an_export_that_cannot_be_is_refused_before_anything_is_measured(tmp_path, monkeypatch):
    save("llama", tmp_path / "llama")
    monkeypatch.setattr("attnrate.tool.heads.advise", lambda *_, **__: pytest.fail("measured"))
    with pytest.raises(SystemExit, match="not exported"):
        cli.main("heads llama --random 2 --export --out out".split())


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ("test_vit --random 2 --sizes 0", "sizes 0 to 32: should lie between 1 and the largest head, 32"),
        ("test_vit --random 2 --tolerance -1", "--tolerance -1.0: should be 0 or more"),
        ("test_vit --random 2 --device cuda:7", "--device cuda:7: PyTorch has no such device here"),
        ("test_vit --random 2 --labels", "random inputs have no labels"),
        ("test_vit --images pictures --labels", "pictures: --labels needs a folder for each class"),
        ("test_vit --images pictures --labels lines.txt", "lines.txt: should hold a class number a line for each of 3"),
        ("test_vit --random 2 --revision main", "--revision is for names on the hub"),
        ("llama --random 2 --export --sizes 2", "not exported: queries or keys are more than a linear layer"),
        ("somebody/model --random 2", "somebody/model: timm and torchvision have no such model, and transformers"),
        ("test_resnet --random 2", "no attention that can be seen"),
        ("test_vit --random 2 --sizes 32", "nothing to try: heads have a size of 32"),
        ("test_vit --images pictures --labels far.txt", "labels 0 to 1000: the model has classes 0 to 999"),
        ("test_vit --images pictures --labels zero.txt --weights features.safetensors", "has no classifier"),
        ("bert --text lines.txt --labels zero2.txt", r"labels of shape \(2,\) are not for outputs of shape \(2, "),
    ],
)
def test_a_mistake_costs_one_line_and_writes_nothing(tmp_path, args, says):
    draw(tmp_path / "pictures")
    (tmp_path / "lines.txt").write_text("a b\nc d\n")
    (tmp_path / "far.txt").write_text("0\n0\n1000\n")
    (tmp_path / "zero.txt").write_text("0\n0\n0\n")
    (tmp_path / "zero2.txt").write_text("0\n0\n")
    if "features" in args:
        save_file(timm.create_model("test_vit", num_classes=0).state_dict(), tmp_path / "features.safetensors")
    for name in ("llama", "bert"):
        if name in args:
            save(name, tmp_path / name)
    before = set(tmp_path.rglob("*"))
    with pytest.raises(SystemExit, match=says) as e:
        cli.main(["heads", *args.split(), "--out", "out"])
    assert isinstance(e.value.code, str) and "\n" not in e.value.code
    assert set(tmp_path.rglob("*")) == before
