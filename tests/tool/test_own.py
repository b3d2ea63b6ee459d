"""A module of one's own and its batches give the folders that the commands write."""

import json

import pandas as pd
import pytest
import torch
from torch import nn

from attnrate.core.errors import UserError
from attnrate.tool import heads, spectrum
from tests.spectra.by_hand import Attention, X, softmax


class Net(nn.Module):
    """Two layers that attend by hand, and classes."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.last = Attention(softmax), Attention(softmax), nn.Linear(8, 2)

    def forward(self, x, shift=0.0):
        return self.last(self.b(self.a(x + shift))).mean(1)


def test_spectra(tmp_path, monkeypatch):
    monkeypatch.setattr(spectrum, "save", lambda name, figure, draft: (draft / f"{name}.png").touch())
    found = spectrum.spectrum_of(Net(), [X, {"x": X, "shift": X}], tmp_path / "out", against=Net(), which=["scores"])
    assert found.inputs == 6 and found.layers == ["a", "b"]
    written = spectrum.OUTS | spectrum.AGAINST
    assert {p.name for p in (tmp_path / "out").iterdir()} == {name for name in written if not name.endswith("svg")}
    origin = json.loads((tmp_path / "out" / "provenance.json").read_text())
    assert origin["model"] == "Net" and origin["inputs"]["number"] == 6
    assert origin["against"]["name"] == "Net beside it"
    assert "over 6 inputs (batches: given from Python)" in (tmp_path / "out" / "summary.md").read_text()


@pytest.mark.parametrize("named", [False, True])
def test_heads_with_labels_and_an_export(tmp_path, named):
    batches = [({"x": x} if named else x, torch.tensor([0, 1, 0])) for x in (X, -X)]
    model = Net().train()
    found = heads.heads_of(model, lambda: iter(batches), tmp_path / "out", sizes=[2], tolerance=1, export=True)
    assert {p.name for p in (tmp_path / "out").iterdir()} == heads.OUTS and model.training
    record = json.loads((tmp_path / "out" / "advice.json").read_text())
    assert record["loss"] == "accuracy, drop" and record["inputs"]["number"] == 6
    assert record["export"]["difference"] < 1e-4 and record["advised"] == [2, 2]
    errors = pd.read_csv(tmp_path / "out" / "errors.csv")
    assert len(errors) == len(found.errors) and (errors.n == 6).all()


def test_what_cannot_be_is_told_before_anything_is_written(tmp_path):
    with pytest.raises(UserError, match=r"no nn\.Module"):
        spectrum.spectrum_of("vit", [X], tmp_path / "out")
    with pytest.raises(UserError, match="give a list, or a function that gives them anew"):
        heads.heads_of(Net(), iter([X]), tmp_path / "out")
    with pytest.raises(UserError, match="should be 0 or more"):
        heads.heads_of(Net(), [X], tmp_path / "out", tolerance=-1)
    with pytest.raises(UserError, match=r"--against .*: has other layers \(1 of them\) than Net"):
        spectrum.spectrum_of(Net(), [X], tmp_path / "out", against=Attention(softmax))
    assert not any(tmp_path.iterdir())
