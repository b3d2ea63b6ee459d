"""Figures: the same bytes on every run, and the lines that they claim to draw."""

import itertools

import numpy as np
import pandas as pd
import pytest

from attnrate.report import fig_rates, plots
from attnrate.report.style import figure
from tests.report.common import same_bytes

HEADS = (1, 2, 4, 8)


def table():
    rows = [
        {"pairing": p, "alpha": a, "rank": r, "mh": m, "seed": s, "estimator": e, "mse": m**-1.0 * (1 + s) * factor}
        for p, factor in {"dyadic-0": 1, "dyadic-1": 2, "dyadic-2": 4, "same": 10}.items()
        for a in (0.55, 1.0, 2.0)
        for r in ("2", "6", "inf")
        for m in HEADS
        for s in (0, 1)
        for e in ("paper", "trained", "constructive", "free-kernel", "pod")
        if p != "same" or e not in ("paper", "trained")
    ]
    return pd.DataFrame(rows)


def pod():
    t = table().query("estimator == 'pod' and seed == 0")
    return t.assign(mse_without_diagonal=t.mse / 2, tail_sum=t.mse / 3)


def test_two_runs_give_the_same_bytes():
    same_bytes(lambda: fig_rates.figure1(table(), 512, "smoke"))
    same_bytes(lambda: fig_rates.figure_estimators(table(), pod(), 512, "smoke"))


def lines(ax):
    return {line.get_label(): line.get_xydata() for line in ax.get_lines()}


@pytest.fixture
def figure1():
    drawn = fig_rates.figure1(table(), 512, "smoke")
    yield drawn
    figure.plt.close(drawn)


def panels(figure1):
    """(pairing, α, panel)."""
    rows = itertools.product(("drawn", "same"), (0.55, 1.0, 2.0))
    return [(*key, ax) for key, ax in zip(rows, figure1.axes, strict=True)]


def test_figure_1_has_a_panel_for_each_pairing_and_alpha_with_three_ranks(figure1):
    for pairing, alpha, ax in panels(figure1):
        assert ax.get_title() == (f"$\\sigma_k = k^{{-{alpha:g}}}$" if pairing == "drawn" else "")
        assert [ax.get_xscale(), ax.get_yscale()] == ["log", "log"]
        curves = [name for name in lines(ax) if name.startswith("r = ")]
        shown = ("best error found", "trained with Muon", "paper's recipe")[: 3 if pairing == "drawn" else 1]
        assert curves == [f"r = {rank}, {name}" for rank in ("2", "6", "inf") for name in shown]


def test_the_grey_line_starts_at_the_curve_and_has_the_predicted_slope(figure1):
    for _, alpha, ax in panels(figure1):
        found = lines(ax)
        (guide,) = (xy for name, xy in found.items() if name.startswith("$m_h"))
        slope = np.polyfit(*np.log(guide).T, 1)[0]
        assert slope == pytest.approx(-(2 * alpha - 1), abs=1e-9)
        assert guide[0] == pytest.approx(found["r = inf, best error found"][0])


def test_a_curve_is_the_median_of_the_draws_and_its_band_their_range(figure1):
    """The best error of each draw is that of its best seed; the others take every seed."""
    for pairing, _, ax in panels(figure1):
        found = lines(ax)
        best = 2 if pairing == "drawn" else 10
        assert found["r = 2, best error found"].tolist() == [[m, best / m] for m in HEADS]
        if pairing == "drawn":
            assert found["r = 2, paper's recipe"].tolist() == [[m, 3 / m] for m in HEADS]  # of 1, 2, 2, 4, 4, 8
            band = ax.collections[0].get_paths()[0].vertices
            assert [band[band[:, 0] == 1, 1].min(), band[band[:, 0] == 1, 1].max()] == [1, 4]


def test_the_caption_states_profile_draws_and_seeds_and_the_legend_each_thing_once(figure1):
    assert "smoke profile, pairings drawn: 3, seeds: 2" in figure1.get_suptitle()
    (legend,) = figure1.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names[:3] == ["r = 2", "r = 6", "r = ∞ (R = 512 terms)"] and len(set(names)) == len(names) == 7


def test_the_comparison_shows_every_estimator_for_each_alpha_on_the_drawn_pairings():
    drawn = fig_rates.figure_estimators(table(), pod(), 512, "smoke")
    assert len(drawn.axes) == 6  # three α; r = ∞ and 6
    for ax in drawn.axes:
        found = lines(ax)
        assert {"paper", "trained", "constructive", "free-kernel", "POD truncation"} <= set(found)
        assert found["POD truncation, s ≠ t"].tolist() == [[m, 1 / m] for m in HEADS]
    assert "ill-posed" in drawn.axes[0].get_title() and "ill-posed" not in drawn.axes[2].get_title()
    figure.plt.close(drawn)


@pytest.mark.parametrize("pairings", [["dyadic-0"], ["same"]])
def test_a_smaller_grid_is_drawn_without_the_missing_parts(pairings):
    t = table().query("alpha > 0.6 and rank != '6' and mh < 4 and pairing in @pairings")
    drawn = fig_rates.figure1(t, 16, "smoke")
    assert len(drawn.axes) == 2 and not any("r = 6" in name for name in lines(drawn.axes[0]))
    figure.plt.close(drawn)
    figure.plt.close(fig_rates.figure_estimators(t, pod().query("pairing in @pairings"), 16, "smoke"))


def test_the_plot_of_dvc_is_the_median_over_the_draws():
    found = plots.rates(table())
    assert list(found.columns) == ["mh", "alpha 0.55", "alpha 1.0", "alpha 2.0"]
    assert found["alpha 1.0"].tolist() == [2 / m for m in HEADS]
