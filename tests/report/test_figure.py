"""Figures: the same bytes on every run, and the lines that they claim to draw."""

import numpy as np
import pandas as pd
import pytest

from attnrate.report import fig_rates
from attnrate.report.style import figure
from tests.report.common import same_bytes

HEADS = (1, 2, 4, 8)


def table():
    rows = [
        {"alpha": a, "rank": r, "mh": m, "seed": s, "estimator": e, "mse": m**-1.0 * (1 + s)}
        for a in (0.55, 1.0, 2.0)
        for r in ("2", "6", "inf")
        for m in HEADS
        for s in (0, 1)
        for e in ("paper", "trained", "constructive", "free-kernel", "pod")
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


def test_figure_1_has_the_papers_two_panels_and_three_ranks(figure1):
    assert len(figure1.axes) == 2
    for ax, alpha in zip(figure1.axes, fig_rates.PAPER_ALPHAS, strict=True):
        assert f"{alpha:g}" in ax.get_title()
        assert [ax.get_xscale(), ax.get_yscale()] == ["log", "log"]
        best = [name for name in lines(ax) if name.endswith("best")]
        assert best == ["r = 2, best", "r = 6, best", "r = ∞ (R = 512 terms), best"]


def test_the_grey_line_starts_at_the_curve_and_has_the_predicted_slope(figure1):
    for ax, alpha in zip(figure1.axes, fig_rates.PAPER_ALPHAS, strict=True):
        found = lines(ax)
        (guide,) = (xy for name, xy in found.items() if name.startswith("$m_h"))
        slope = np.polyfit(*np.log(guide).T, 1)[0]
        assert slope == pytest.approx(-(2 * alpha - 1), abs=1e-9)
        assert guide[0] == pytest.approx(found["r = ∞ (R = 512 terms), best"][0])


def test_the_recipe_is_the_median_of_the_seeds(figure1):
    found = lines(figure1.axes[0])["r = 2, paper's recipe"]
    assert found.tolist() == [[m, 1.5 / m] for m in HEADS]


def test_the_caption_states_profile_and_seeds(figure1):
    assert "smoke profile" in figure1.get_suptitle() and "2 seeds" in figure1.get_suptitle()


def test_the_comparison_shows_every_estimator_for_each_alpha():
    drawn = fig_rates.figure_estimators(table(), pod(), 512, "smoke")
    assert len(drawn.axes) == 6  # three α; r = ∞ and 6
    for ax in drawn.axes:
        assert {"paper", "trained", "constructive", "free-kernel", "POD truncation"} <= set(lines(ax))
    assert "ill-posed" in drawn.axes[0].get_title() and "ill-posed" not in drawn.axes[2].get_title()
    figure.plt.close(drawn)


def test_a_smaller_grid_is_drawn_without_the_missing_parts():
    """The smoke profile has one of the paper's α and one finite rank."""
    t = table().query("alpha > 0.6 and rank != '6' and mh < 4")
    drawn = fig_rates.figure1(t, 16, "smoke")
    assert len(drawn.axes) == 1 and not any("r = 6" in name for name in lines(drawn.axes[0]))
    figure.plt.close(drawn)
