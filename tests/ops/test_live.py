"""What a training tells while it runs: it reaches a tracker, and changes nothing."""

import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
import torch
from torch import nn

from attnrate.core.errors import UserError
from attnrate.large import loop as large
from attnrate.ops import live
from tests.conftest import ROOT
from tests.large.test_loop import Line


class Heard(logging.Handler):
    def __init__(self, tell):
        super().__init__()
        self.tell = tell

    def emit(self, record):
        self.tell(record.getMessage(), record.step, record.steps, record.news)


@pytest.fixture
def listen(monkeypatch):
    logger = logging.getLogger("attnrate.live")

    def to(tell):
        monkeypatch.setattr(logger, "handlers", [Heard(tell)])
        logger.setLevel(logging.INFO)

    yield to
    logger.setLevel(logging.NOTSET)


def train(name):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 4), nn.Dropout(0.5), nn.Linear(4, 2))
    recipe = large.Recipe(steps=230, lr=0.1, history=3, checkpoint=100)
    history = large.train(
        model, Line(), large.classification_loss(), recipe, seed=0, checkpoint=Path(f"{name}.safetensors"), label="a, b"
    )
    return torch.cat([p.flatten() for p in model.parameters()]), history


def test_a_long_training_is_in_dvclive_and_ends_in_the_same_bytes(listen):
    Path("params.yaml").write_text("live: dvclive")
    weights, history = train("alone")
    follower = live.Follower("vit_main@all")
    listen(follower.follow)
    heard, same = train("heard")
    follower.end()
    assert torch.equal(weights, heard) and history.equals(same)
    folder = Path("live/vit_main_all/a_b/plots/metrics")
    found = {path.stem: pd.read_csv(path, sep="\t") for path in folder.iterdir()}
    assert set(found) == {"loss", "lr", "points_per_second", "eta"}
    assert found["loss"].step.tolist() == [50, 76, 100, 150, 152, 200, 228, 230]
    assert (
        found["loss"].loss.iloc[-1] < found["loss"].loss.iloc[0] and (found["points_per_second"].iloc[:, 1] > 0).all()
    )
    assert found["eta"].eta.iloc[-1] == 0 and not Path("dvc.yaml").exists()


def followed(*steps):
    """What there is of a training's loss after a process told of these steps."""
    Path("params.yaml").write_text("live: dvclive")
    follower = live.Follower("vit_main@seed0")
    for step in steps:
        follower.follow("qk, seed 0", step, 1000, {"loss": 1 / step})
    follower.end()
    return pd.read_csv("live/vit_main_seed0/qk_seed_0/plots/metrics/loss.tsv", sep="\t").step.tolist()


def test_a_training_that_goes_on_adds_to_its_curve_and_one_that_starts_has_its_own():
    assert followed(50, 100, 150) == [50, 100, 150]
    assert followed(150, 200) == [50, 100, 150, 150, 200]
    assert followed(50, 100) == [50, 100]


def test_the_documented_command_plots_the_loss_over_the_steps():
    followed(50, 100, 150)
    Path(".dvc").mkdir()
    Path(".dvc/config").write_text("[core]\n    no_scm = true\n")
    (command,) = re.findall(
        r"^    (dvc plots show .*live/.*?)(?:  +#.*)?$", (ROOT / "docs/profiles.md").read_text(), re.M
    )
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(command, shell=True, check=True, env=os.environ | {"PATH": programs})
    (points,) = re.findall(r'"values": (\[.*?\])', Path("dvc_plots/index.html").read_text())
    assert [(float(p["step"]), float(p["loss"])) for p in json.loads(points)] == [(s, 1 / s) for s in (50, 100, 150)]


def test_a_short_training_and_none_leave_nothing(listen):
    for name, steps in (("dvclive", live.FEWEST - 1), ("none", 10**6)):
        Path("params.yaml").write_text(f"live: {name}")
        live.Follower("s").follow("label", 50, steps, {"loss": 1.0})
    assert not live.FOLDER.exists()


class Writer:
    """TensorBoard's, or a run of Weights & Biases, which is not installed either."""

    def __init__(self, *told, **named):
        self.told, self.heard = (told, named), []

    def log(self, values, step):
        self.heard.append((step, values))

    def add_scalar(self, name, value, global_step):
        self.heard.append((global_step, {name: value}))

    def flush(self):
        pass

    def close(self):
        self.heard.append("closed")

    finish = close


@pytest.mark.parametrize(
    ("name", "module", "told"),
    [
        ("tensorboard", "torch.utils.tensorboard", ((os.path.join("live", "vit_main_seed0", "a_b"),), {})),
        ("wandb", "wandb", ((), {"project": "attnrate", "name": os.path.join("vit_main_seed0", "a_b"), "dir": "live"})),
    ],
)
def test_one_line_takes_another_tracker(monkeypatch, name, module, told):
    made = []

    def make(*given, **named):
        made.append(Writer(*given, **named))
        return made[-1]

    for known in (name, module):
        monkeypatch.setitem(sys.modules, known, ModuleType(known))
        sys.modules[known].__spec__ = sys.__spec__
    sys.modules[module].SummaryWriter = sys.modules[module].init = make
    Path("params.yaml").write_text(f"live: {name}")
    live.require(name)
    follower = live.Follower("vit_main@seed0")
    for step in (50, 100):
        follower.follow("a, b", step, 1000, {"loss": 1 / step})
    follower.end()
    (writer,) = made
    assert writer.told == told and writer.heard == [(50, {"loss": 1 / 50}), (100, {"loss": 1 / 100}), "closed"]


@pytest.mark.parametrize("name", ["dvclive", "tensorboard", "wandb"])
def test_a_tracker_that_is_not_installed_is_named(monkeypatch, name):
    monkeypatch.setattr(live.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UserError, match=rf"^live: {name} is not installed; `pip install {name}`, or `-S live=none`$"):
        live.begin(name, live.FOLDER / "stage" / "run", resume=False)
    assert not live.FOLDER.exists()
    live.require("none")


SCRIPT = """
import launcher
import logging
for step in (50, 100):
    logging.getLogger("attnrate.live").info("run", extra={"step": step, "steps": 999, "news": {"loss": 1.0}})
"""


def test_a_tracker_that_fails_is_told_once_and_left(tmp_path):
    (tmp_path / "stage.py").write_text(SCRIPT)
    (tmp_path / "params.yaml").write_text("live: nonsense")
    command = [sys.executable, "stage.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT / "stages")}, capture_output=True, text=True
    )
    said = [line for line in done.stderr.splitlines() if "GB peak" not in line]
    assert done.returncode == 0 and said == ["stage: no live report (KeyError: 'nonsense'); the training goes on"]
