"""Appendix B.1: verdicts follow the results, and the figures show the run they name."""

import numpy as np
import pandas as pd
import pytest

from attnrate.core import params
from attnrate.examples import tasks
from attnrate.examples.runs import MAIN, STATED, median_run
from attnrate.report import fig_examples
from attnrate.report.claims.examples import EVALUATORS
from attnrate.report.claims.ledger import NOT, PARTLY, REPRODUCED, Untestable
from attnrate.report.style import figure
from tests.conftest import ROOT
from tests.report.common import LIMITS, same_bytes, write

VARIANTS = {task: p.variants for task, p in params.read(ROOT / "params.yaml").examples.tasks.items()}
IDEAL = {"mse": 1e-4, "argmax_agreement": 0.99, "attention_corr": 0.999, "attention_maxdev": 0.1, "ff_rmse": 0.01}


def table():
    """Results as the paper would have them."""
    return pd.DataFrame(
        {"task": task, "variant": name, "mh": 8, "seed": seed, **IDEAL, "mse": 1e-4 * (1 + seed)}
        for task, names in VARIANTS.items()
        for name in names
        for seed in (0, 1, 2)
    )


def judged(name, t, tmp_path):
    return EVALUATORS[name](write(tmp_path, {"examples_table/examples.csv": t}), LIMITS[name])


@pytest.mark.parametrize("name", EVALUATORS)
def test_all_is_reproduced_in_the_papers_world(name, tmp_path):
    finding = judged(name, table(), tmp_path)
    assert finding.verdict == REPRODUCED and finding.measured and finding.n >= 6


@pytest.mark.parametrize(
    ("name", "column", "value", "broken", "verdict"),
    [
        ("ff-recovered", "ff_rmse", 0.025, ["mass"], PARTLY),
        ("ff-recovered", "ff_rmse", 0.1, list(VARIANTS), NOT),
        ("argmax-recovered", "argmax_agreement", 0.9, ["nearest"], PARTLY),
        ("attention-weights", "attention_corr", 0.98, ["selection"], PARTLY),
        ("attention-weights", "mse", 0.002, ["selection"], PARTLY),
        ("as-stated", "attention_corr", 0.9, ["mass", "selection"], NOT),
        ("low-loss-rule", "attention_corr", 0.2, ["mass"], NOT),
    ],
)
def test_a_broken_result_shows(name, column, value, broken, verdict, tmp_path):
    t = table()
    t.loc[t.task.isin(broken), column] = value
    assert judged(name, t, tmp_path).verdict == verdict


def test_one_bad_seed_of_three_does_not_move_a_median(tmp_path):
    t = table()
    t.loc[t.seed == 2, ["ff_rmse", "argmax_agreement"]] = [1.0, 0.0]
    assert judged("ff-recovered", t, tmp_path).verdict == REPRODUCED
    assert judged("argmax-recovered", t, tmp_path).verdict == REPRODUCED


def test_counter_examples_are_named(tmp_path):
    t = table()
    t.loc[(t.variant == "untied") & (t.seed == 1), "attention_corr"] = 0.1
    finding = judged("low-loss-rule", t, tmp_path)
    assert finding.verdict == PARTLY and "untied seed 1" in finding.why and "seed 0" not in finding.why


def test_a_run_of_high_loss_is_no_counter_example(tmp_path):
    t = table()
    t.loc[t.variant == "position-only", ["attention_corr", "mse"]] = [0.1, 0.5]
    assert judged("low-loss-rule", t, tmp_path).verdict == REPRODUCED


def test_missing_variants_cannot_be_tested(tmp_path):
    t = table()
    with pytest.raises(Untestable, match=r"selection \(raw-index\)"):
        judged("as-stated", t[t.variant != "raw-index"], tmp_path)
    with pytest.raises(Untestable, match="no run on mass"):
        judged("low-loss-rule", t.assign(mse=1.0), tmp_path)


@pytest.mark.parametrize(("seeds", "middle"), [(1, 0), (2, 0), (3, 1), (4, 1)])
def test_the_median_run(seeds, middle):
    part = pd.DataFrame({"seed": range(seeds), "mse": np.arange(seeds) / 10}).sample(frac=1, random_state=0)
    assert median_run(part).seed == middle


def panels(task):
    """As stages/examples_train.py writes them, of models that are the task itself but for a shift of 0.1 a seed."""
    shown = tasks.showcase(task, np.random.default_rng(0))
    s = tasks.solve(task, tasks.draw(task, 20, np.random.default_rng(1)))
    known = np.isfinite(s.ff[..., 0])
    many = (len(VARIANTS[task]), 3)
    shift = 0.1 * np.arange(3)[:, None, None]
    return {
        "variants": np.array(VARIANTS[task]),
        "seeds": np.arange(3),
        "x": shown.x[0],
        "true": shown.attention[0],
        "attention": np.broadcast_to(shown.attention[0], (*many, *shown.attention[0].shape)),
        "ff_x": s.x[known],
        "ff_true": s.ff[known],
        "ff": np.broadcast_to(s.ff[known] + shift, (*many, *s.ff[known].shape)),
    }


@pytest.mark.parametrize("task", tasks.TASKS)
def test_the_figure_shows_the_seed_of_median_loss_beside_the_true_weights(task):
    p = panels(task)
    drawn = fig_examples.figure(task, table(), p, "64 fresh inputs, smoke profile")
    learned, true = (ax.images[0].get_array() for ax in drawn.axes[:2])
    assert np.array_equal(learned, true) and np.array_equal(true, p["true"])
    footer = drawn.get_supxlabel()
    assert "smoke profile" in footer and "3 seeds" in footer and "median loss (1)" in footer
    if task != "mass":
        points = np.asarray(drawn.axes[3].collections[0].get_offsets())
        assert points[:, 1] == pytest.approx(points[:, 0] + 0.1)
    figure.plt.close(drawn)


@pytest.mark.parametrize("found", [True, False])
def test_the_counter_example_is_the_low_loss_run_farthest_from_the_rule(found):
    t = table()
    if found:
        t.loc[(t.variant == "untied") & (t.seed == 2), "attention_corr"] = 0.1
        t.loc[(t.variant == "position-only") & (t.seed == 2), ["attention_corr", "mse"]] = [0.0, 1.0]
    drawn = fig_examples.counterexample(t, panels("mass"), "smoke profile", {"mse": 1e-3, "corr": 0.9})
    assert ("does not make" in drawn.get_suptitle()) == found
    assert "segment-id, seed 1" in drawn.axes[0].get_title()
    assert not found or "untied, seed 2" in drawn.axes[1].get_title()
    figure.plt.close(drawn)


def test_the_figures_are_the_same_bytes_on_every_run():
    same_bytes(lambda: fig_examples.figure("nearest", table(), panels("nearest"), "smoke profile"))


def test_the_variants_that_are_judged_are_run():
    assert MAIN == {task: names[0] for task, names in VARIANTS.items()}
    assert all(variant in VARIANTS[task] for task, variant in STATED.items())
