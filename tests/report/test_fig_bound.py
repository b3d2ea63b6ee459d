"""The bound (17) and the errors beside it: both regimes, and a cross only where an error is above the bound."""

import itertools

import pandas as pd
import pytest

from attnrate.report import fig_bound
from attnrate.report.style import figure
from tests.report.common import same_bytes

FIRST = {1: 64.0, 2: 16.0, 4: 4.0, 8: 1.0}  # m_h → first term as printed
SECOND = {1: 1.0, 2: 8.0, 4: 64.0}
ALPHAS = (0.55, 1.5, 2.0)
PAIRINGS = {"dyadic-0": 1, "dyadic-1": 2, "same": 3}
CROSS = "error above the bound as printed"


def truncation():
    """Errors fall less than the first term: at m_h = 8 that of `same` alone is above it."""
    rows = itertools.product(PAIRINGS.items(), ALPHAS, FIRST.items())
    return pd.DataFrame(
        {"pairing": p, "alpha": a, "mh": m, "l1": factor * 0.4, "literal": first, "root": 8 * first**0.5}
        for (p, factor), a, (m, first) in rows
    )


def bounds():
    """The second term of each pairing is its own."""
    rows = itertools.product(PAIRINGS.items(), ALPHAS, ("2", "inf"), SECOND.items())
    return pd.DataFrame(
        {"pairing": p, "alpha": a, "rank": r, "mh": m, "l1": factor * 0.4, "literal": FIRST[m] + factor * second}
        for (p, factor), a, r, (m, second) in rows
    )


def draw(condition="mh > 0"):
    tables = (t.query(condition) for t in (bounds(), truncation()))
    return fig_bound.figure_bound(*tables, 128, (512, 2048), "smoke")


def lines(ax):
    """(label, points) of every line."""
    return [(line.get_label(), line.get_xydata().tolist()) for line in ax.get_lines()]


@pytest.fixture
def drawn():
    made = draw()
    yield made
    figure.plt.close(made)


def test_two_runs_give_the_same_bytes():
    same_bytes(draw)


def test_the_columns_are_the_decays_that_are_well_posed(drawn):
    assert [ax.get_title() for ax in drawn.axes] == ["$\\sigma_k = k^{-1.5}$", "$\\sigma_k = k^{-2}$", "", ""]


def test_a_network_has_its_errors_and_the_two_terms_that_make_the_bound(drawn):
    for ax in drawn.axes[:2]:
        found = dict(lines(ax))
        errors = [xy for name, xy in lines(ax) if name.startswith("error, ")]
        assert errors == [[[m, factor * 0.4] for m in SECOND] for factor in PAIRINGS.values()]
        assert found["first term, as printed"] == [[m, FIRST[m]] for m in SECOND]
        assert found["second term, least over pairings"] == [[m, second] for m, second in SECOND.items()]
        assert found["bound (17), their sum"] == [[m, FIRST[m] + second] for m, second in SECOND.items()]
        assert found[CROSS] == []


def test_a_kernel_alone_has_the_first_term_in_both_readings_and_a_cross_where_it_is_broken(drawn):
    for ax in drawn.axes[2:]:
        found = dict(lines(ax))
        assert found["first term, as printed"] == [[m, first] for m, first in FIRST.items()]
        assert found["first term, with the square root"] == [[m, 8 * first**0.5] for m, first in FIRST.items()]
        assert found[CROSS] == [[8, pytest.approx(1.2)]]


def test_it_states_profile_width_terms_and_draws_and_the_legend_each_thing_once(drawn):
    top, bottom = (drawn.axes[i].get_ylabel() for i in (0, 2))
    assert "smoke profile" in drawn.get_suptitle() and "$m_{FF} = 128$" in top
    assert "R = 512 terms, pairings drawn: 2" in top and "R = 2048 terms, pairings drawn: 2" in bottom
    (legend,) = drawn.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert len(set(names)) == len(names) == 7


@pytest.mark.parametrize(
    ("condition", "columns", "pairings"),
    [
        ("alpha == 2", 1, 3),
        ("alpha < 1", 1, 3),  # ill-posed, but all there is
        ("pairing != 'same'", 2, 2),
        ("pairing == 'same' and mh < 4", 2, 1),
        ("mh == 1", 2, 3),
    ],
)
def test_a_smaller_grid_is_drawn_without_the_missing_parts(condition, columns, pairings, tmp_path):
    made = draw(condition)
    assert len(made.axes) == 2 * columns
    for ax in made.axes:
        assert sum(name.startswith("error, ") for name, _ in lines(ax)) == pairings
    figure.save("small", made, tmp_path)


def test_head_sizes_of_networks_that_the_kernel_lacks_have_no_terms_apart():
    made = fig_bound.figure_bound(bounds(), truncation().query("mh != 2"), 128, (512, 2048), "smoke")
    assert dict(lines(made.axes[0]))["second term, least over pairings"] == [[1, 1.0], [4, 64.0]]
    figure.plt.close(made)
