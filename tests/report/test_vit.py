"""Section 5.2 and Table 1 on images: the joined runs, the verdicts, Figures 2 and 3."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import yaml

from attnrate.core import files, stage
from attnrate.laws.vit import BESIDE, errors, fits
from attnrate.report import fig_vit, table1
from attnrate.report.claims.ledger import NOT, REPRODUCED, Untestable
from attnrate.report.claims.vit import EVALUATORS
from attnrate.report.style.figure import plt
from tests.conftest import ROOT
from tests.report.common import LIMITS, same_bytes, write

SIZES = (1, 2, 4, 8, 16, 32)
RUNS, FITS = "vit_table/vit.csv", "vit_table/fits.json"
VALUES, RANKS = "vit_spectra/values.csv", "vit_spectra/ranks.csv"
MAIN_VALUES, MAIN_RANKS = "vit_spectra/main_values.csv", "vit_spectra/main_ranks.csv"


def runs():
    """Results as the paper describes them: a power law, and a small drop; the main model is better than the sweep."""
    rows = [("qk", mh, 0, "original", 0.7 * mh**-0.27 + 1.05, 1.4, 0.5) for mh in SIZES]
    for seed in (0, 1, 2):
        rows += [("qk", mh, seed, "beside", 1.2 + 0.1 * seed, 1.3, 0.55) for mh in (1, 32)]
        tests = {"main": 0.58, "continued": 0.6, "permuted": 0.59 - 0.001 * seed, "unadapted": 0.4}
        rows += [("qk", 32, seed, variant, 1.0, 1.1, accuracy) for variant, accuracy in tests.items()]
    return pd.DataFrame(rows, columns=["reading", "mh", "seed", "variant", "train_loss", "test_loss", "test_acc"])


def spectra():
    """Of low rank, and concentrated."""
    cells = [(mh, layer, head, k) for mh in SIZES for layer in (1, 2) for head in (1, 2) for k in range(1, mh + 1)]
    values = pd.DataFrame(cells, columns=["mh", "layer", "head", "k"]).assign(reading="qk", n=9)
    return values.assign(mean=2.0 * values.k**-2.0, sd=0.1 * values.k**-2.0)


@pytest.fixture
def results(tmp_path):
    values = spectra()
    ranks = values[values.k == 1].assign(effective=2.0, energy90=1.5, energy99=3.0)
    main = {MAIN_VALUES: values[values.mh == 32], MAIN_RANKS: ranks[ranks.mh == 32]}
    return write(tmp_path, {RUNS: runs(), VALUES: values, RANKS: ranks, FITS: fits(runs(), values)} | main)


def change(results, name, **columns):
    write(results, {name: pd.read_csv(results / name).assign(**columns)})


def verdict(results, name):
    return EVALUATORS[name](results, LIMITS[name]).verdict


def test_every_run_is_in_the_table_and_the_main_model_is_none_of_the_sweep():
    """Even where the sweep has its head size."""
    vit = {"grid": {"readings": ["qk"], "mh": [1, 8]}}
    files.write_text("params.yaml", yaml.safe_dump({"vit": vit}))
    row = pd.DataFrame({"reading": "qk", "seed": 0, "variant": "original"}, index=[0])
    parts = {
        "vit_sweep/qk-1/scores.csv": row.assign(mh=1, train_loss=1.5),
        "vit_sweep/qk-8/scores.csv": row.assign(mh=8, train_loss=1.2),
        "vit_sweep/qk-4/scores.csv": row.assign(mh=4, train_loss=9.0),  # of another grid
        "vit_beside/scores.csv": row.assign(mh=1, train_loss=1.3, variant="beside"),
        "vit_main/scores.csv": row.assign(mh=8, train_loss=1.1, variant="main"),
        "vit_permuted/scores.csv": row.assign(mh=8, train_loss=1.0, variant="permuted"),
        VALUES: spectra(),
    }
    write(stage.results(), parts)
    subprocess.run([sys.executable, ROOT / "stages/vit_table.py"], check=True)
    joined = pd.read_csv(stage.results() / RUNS)
    found = joined.set_index(["variant", "mh"]).train_loss.to_dict()
    sweep = {("original", 1): 1.5, ("original", 8): 1.2}
    assert found == sweep | {("beside", 1): 1.3, ("main", 8): 1.1, ("permuted", 8): 1.0} and len(joined) == 5
    assert files.read_json(stage.results() / FITS)["error"]["qk"]["n"] == 2


def test_the_sweep_and_what_stands_beside_it_are_two_curves():
    vit = runs()
    assert errors(vit, "qk").to_dict() == pytest.approx({mh: 0.7 * mh**-0.27 + 1.05 for mh in SIZES})
    assert errors(vit, "qk", BESIDE).to_dict() == pytest.approx({1: 1.3, 32: 1.3})


@pytest.mark.parametrize("name", EVALUATORS)
def test_results_as_the_paper_describes_them_are_reproduced(results, name):
    assert verdict(results, name) == REPRODUCED


def test_results_that_contradict_are_not(results):
    change(results, MAIN_VALUES, sd=lambda t: t["mean"])
    change(results, MAIN_RANKS, energy99=30.0)
    accuracy = {"permuted": 0.5, "continued": 0.6, "unadapted": 0.6}
    change(results, RUNS, train_loss=lambda t: 1 + 0.01 * t.mh, test_acc=lambda t: t.variant.map(accuracy))
    for name in ("vit-concentration", "vit-low-rank", "vit-error-falls", "vit-permuted"):
        assert verdict(results, name) == NOT


def test_concentration_and_rank_are_the_main_models_and_the_fall_is_the_sweeps(results):
    change(results, VALUES, sd=lambda t: t["mean"])
    change(results, RANKS, energy99=30.0)
    change(results, RUNS, train_loss=lambda t: t.train_loss.where(t.variant == "original", t.mh))
    for name in ("vit-concentration", "vit-low-rank", "vit-error-falls"):
        assert verdict(results, name) == REPRODUCED


def test_an_open_exponent_cannot_be_tested(results):
    vit = runs().assign(train_loss=lambda t: 1.4 - 0.02 * np.log(t.mh))
    write(results, {FITS: fits(vit, spectra())})
    with pytest.raises(Untestable, match="6 head sizes leave the exponent open"):
        verdict(results, "vit-exponent")
    write(results, {FITS: fits(vit[vit.mh < 8], spectra())})
    with pytest.raises(Untestable, match="too few head sizes"):
        verdict(results, "vit-exponent")


def test_figures_are_the_same_bytes_twice(results):
    values = np.random.default_rng(0).lognormal(size=(2, 30, 8)).astype(np.float32)
    images = dict(zip(("first", "last"), values, strict=True))
    same_bytes(lambda: fig_vit.figure2(images, "tokens", "test"))
    laws = files.read_json(results / FITS)
    same_bytes(lambda: fig_vit.figure3(runs(), spectra(), laws, "tokens", ("adamw", "muon"), "test"))


def test_figure_3_has_a_mark_for_each_run_under_the_name_of_its_recipe(results):
    other = runs().query("variant == 'original'").assign(reading="head")
    vit, values = pd.concat([runs(), other]), pd.concat([spectra(), spectra().assign(reading="head")])
    drawn = fig_vit.figure3(vit, values, fits(vit, values), "tokens", ("one", "two"), "test")
    for ax, reading in zip(drawn.axes[1::2], ("qk", "head"), strict=True):
        marks = {line.get_label(): len(line.get_xdata()) for line in ax.get_lines()}
        ours = {name: n for name, n in marks.items() if name.startswith("ours")}
        beside = {"ours, two, each seed": 6} if reading == "qk" else {}
        assert ours == {"ours, one, each seed": len(SIZES)} | beside and "authors' points" in marks
    plt.close(drawn)


def test_table_1_says_data_seeds_spread_and_the_papers_numbers():
    sentences = pd.DataFrame({"corpus": "toy", "variant": ["original", "permuted"], "seed": 0, "bleu": [20.0, 19.0]})
    row = table1.wide(table1.join(runs(), 32, "cifar10", sentences)).loc["permuted"]
    assert row["paper (accuracy)"] == "0.96" and row["paper (BLEU)"] == "25.91"
    assert all(part in row["CIFAR10 (accuracy)"] for part in ("0.5890", "0.5880", "0.5900", "n = 3"))
    assert "19.00" in row["toy sentences, not WMT14 (BLEU)"] and "n = 1" in row["toy sentences, not WMT14 (BLEU)"]
    assert "not CIFAR10" in table1.wide(table1.join(runs(), 32, "toy", sentences)).columns[1]


def test_the_main_model_is_table_1s_original():
    """Neither the sweep's nor the one beside it, of the same head size."""
    rows = {
        "reading": "qk",
        "mh": 64,
        "seed": 0,
        "variant": ["original", "beside", "main"],
        "test_acc": [0.5, 0.6, 0.98],
    }
    assert table1.cifar10(pd.DataFrame(rows), 64).set_index("variant").value.to_dict() == {"original": 0.98}
