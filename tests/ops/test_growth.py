"""Hours of a profile on the laptop's cores."""

import json
import shutil
from pathlib import Path

import pytest

from attnrate.core import params
from attnrate.ops import growth
from attnrate.schemas.all import Params
from attnrate.schemas.check import check
from tests.conftest import ROOT
from tests.pipeline import NONE

LAPTOP = params.read(ROOT / "params.yaml")
SECONDS = {"vit_main@all": 3600.0, "linear_train@plain": 1800.0, "linear_train@centred": 1800.0, "fig1": 36.0}


def grown(**changed: dict) -> dict[str, float]:
    """Hours where some parameters of vit.main and linear.train are others."""
    other = json.loads(json.dumps(LAPTOP))
    other["vit"]["main"] |= changed.get("main", {})
    other["linear"]["train"] |= changed.get("train", {})
    return growth.hours(*(check(Params, p, "made up") for p in (LAPTOP, other)), SECONDS)


def test_hours_grow_with_the_work_of_a_stage_and_with_no_other():
    assert grown() == pytest.approx({"vit_main": 1, "linear_train": 1, "fig1": 0.01})
    steps = grown(train={"steps": 3 * LAPTOP.linear.train.steps})
    assert steps == pytest.approx({"vit_main": 1, "linear_train": 3, "fig1": 0.01})
    seeds = grown(main={"seeds": [*range(2 * len(LAPTOP.vit.main.seeds))]})
    assert seeds == pytest.approx({"vit_main": 2, "linear_train": 1, "fig1": 0.01})


def test_stages_that_a_laptop_has_no_item_of():
    """ViTs go by their operations; a second corpus takes what the first one does."""

    def hours(parts, corpora, halved=(), sentences=()):
        other = json.loads(json.dumps(LAPTOP))
        other["vit"]["tuned"]["parts"], other["translation"]["beside"]["corpora"] = parts, corpora
        other["vit"]["gate"]["parts"], other["translation"]["gate"]["parts"] = list(halved), list(sentences)
        seconds = SECONDS | {"translation_main@all": 1800.0, "translation_bleu": 360.0}
        return growth.hours(*(check(Params, p, "made up") for p in (LAPTOP, other)), seconds)

    assert not NONE & set(hours([], []))
    again = LAPTOP.translation.tune.steps / LAPTOP.translation.train.steps
    sentences = hours([], [], sentences=["all"])["translation_gate"]
    assert sentences == pytest.approx(0.5 * again)  # half an hour trains the original; two runs, half the steps
    own, main = hours([], [], ["permuted", "qk-1"])["vit_gate"], LAPTOP.vit.main.epochs / LAPTOP.vit.tune.epochs
    assert own == pytest.approx(sum(hours([], [], [item])["vit_gate"] for item in ("permuted", "qk-1")))
    assert 1 / main < hours([], [], ["permuted"])["vit_gate"] < 1.5 / main  # two runs at half the steps; the tests stay
    one, two = (hours([f"seed{i}" for i in range(n)], ["help", "toy"][:n]) for n in (1, 2))
    assert one["translation_beside"] == pytest.approx(0.6) and two["translation_beside"] == pytest.approx(1.2)
    assert two["vit_tuned"] == pytest.approx(2 * one["vit_tuned"]) and one["vit_tuned"] > 1


def test_the_night_is_a_night(capsys):
    """At most 8 hours, and 2.5 a branch, with the seconds of the committed runs."""
    for name in ("dvc.yaml", "params.yaml", "profiles/desk.yaml", "reports/runs.json"):
        Path(name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, name)
    growth.main(["desk"])
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    hours = {name: float(rest.split()[0]) for name, rest in (line.split(": ") for line in lines)}
    assert 2 < hours.pop("all") <= 8 and max(hours.values()) <= 2.5 and len(hours) == 9


@pytest.mark.parametrize(("args", "words"), [([], "usage"), (["nope"], "no such profile")])
def test_mistakes_are_one_line(args, words):
    shutil.copy(ROOT / "params.yaml", "params.yaml")
    with pytest.raises(SystemExit, match=words):
        growth.main(args)
