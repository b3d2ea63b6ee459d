"""Where models come from: libraries that are missing, a hub out of reach, folders that are no models."""

import os
import subprocess
import sys

import pytest
import torch

from attnrate import cli
from attnrate.core.errors import UserError
from attnrate.tool import hub
from attnrate.tool.load import load
from tests.conftest import NOWHERE, ROOT
from tests.tool.test_spectrum import offline, save  # noqa: F401

ASK = """
import sys, time
from attnrate import cli

time.sleep = lambda s: print("slept", s, file=sys.stderr)
for model in sys.argv[1:]:
    try:
        cli.main(["spectrum", *model.split(), "--random", "2", "--out", "out"])
    except SystemExit as e:
        print(e, file=sys.stderr)
"""


def test_a_hub_out_of_reach_costs_a_line_and_no_half_minute(tmp_path):
    says = {"somebody/model": "AutoConfig cannot load it", "test_vit --pretrained": "timm could not"}
    proxies = {name: NOWHERE for p in ("http", "https", "all") for name in (f"{p}_proxy", f"{p}_proxy".upper())}
    env = {**os.environ, **proxies, "PYTHONPATH": str(ROOT / "src"), "HF_HOME": str(tmp_path / "cache")}
    env |= {"NO_PROXY": "", "no_proxy": "", "HF_HUB_OFFLINE": ""}
    done = subprocess.run([sys.executable, "-c", ASK, *says], cwd=tmp_path, env=env, capture_output=True, text=True)
    lines = done.stderr.splitlines()
    assert len(lines) == 2 and all(word in line for word, line in zip(says.values(), lines, strict=True)), done.stderr
    assert not (tmp_path / "out").exists()


def test_the_hub_is_asked_again_later():
    import huggingface_hub

    before = huggingface_hub.constants.HF_HUB_OFFLINE
    with hub.asked():
        assert huggingface_hub.constants.HF_HUB_OFFLINE
    assert huggingface_hub.constants.HF_HUB_OFFLINE is before


@pytest.mark.parametrize(
    ("lacks", "name", "says"),
    [
        ("timm torchvision transformers", "vit_b_16", "timm, torchvision and transformers are not installed: pip inst"),
        ("torchvision", "vit_b_16", "timm has no such model.*, torchvision is not installed: pip install torchvision,"),
        ("timm transformers", "test_vit", "torchvision has no such model.*, timm and transformers are not installed:"),
        ("transformers", "some/model", "read by transformers, which is missing: pip install"),
    ],
)
def test_what_is_not_installed_is_told(monkeypatch, lacks, name, says):
    for module in lacks.split():
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError, match=says):
        load(name)
    if name == "vit_b_16":
        with pytest.raises(UserError, match=r"torchvision.* not installed"):
            load(name, pretrained=True)


def test_a_folder_of_a_models_name_hides_it_only_if_it_is_a_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_vit").mkdir()
    assert load("test_vit").argument == "x"
    save("bert", tmp_path / "test_vit")
    assert load("test_vit").of_texts


def test_a_directory_without_a_tokenizer_knows_no_words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines.txt").write_text("a b\nc d\n")
    for name in ("bert", "gpt2"):
        save(name, tmp_path / name)
        for file in ("tokenizer.json", "tokenizer_config.json"):
            (tmp_path / name / file).unlink()
        with pytest.raises(SystemExit, match=f"{name}: has no tokenizer .*, which --text needs"):
            cli.main(["spectrum", name, "--text", "lines.txt", "--out", "out"])


def test_a_model_is_built_in_the_type_that_it_will_have(tmp_path, monkeypatch):
    save("bert", tmp_path / "bert")
    seen, plain = [], torch.nn.Linear.__init__

    def init(self, *args, **named):
        plain(self, *args, **named)
        seen.append(self.weight.dtype)

    monkeypatch.setattr(torch.nn.Linear, "__init__", init)
    for dtype in (torch.bfloat16, torch.float16):
        seen.clear()
        model = load(str(tmp_path / "bert"), untrained=True, dtype=str(dtype).removeprefix("torch.")).model
        assert seen and set(seen) == {dtype} == {p.dtype for p in model.parameters()}
    assert torch.get_default_dtype() == torch.float32
