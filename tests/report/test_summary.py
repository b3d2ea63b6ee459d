"""The one metrics file and the cost table."""

import json
import math

import pandas as pd
import pytest

from attnrate.ops import costs, estimate
from attnrate.report import summary


@pytest.fixture
def results(tmp_path):
    rows = [(0.55, "best", -1.5), (2.0, "best", -2.5), (2.0, "pod", -9.0)]
    pd.DataFrame(rows, columns=["alpha", "estimator", "slope"]).to_csv(tmp_path / "rates_slopes.csv", index=False)
    table = [
        ("2", 1, "constructive", 1e-2),
        ("2", 2, "constructive", 1e-8),
        ("2", 3, "constructive", 2e-8),
        ("inf", 3, "constructive", 5e-1),
        ("2", 2, "paper", 3e-1),
    ]
    pd.DataFrame(table, columns=["rank", "mh", "estimator", "mse"]).to_csv(tmp_path / "rates.csv", index=False)
    return tmp_path


def test_the_numbers_are_the_slope_at_the_largest_alpha_and_the_worst_exact_cell(results):
    assert summary.rates(results) == {"slope": -2.5, "exact": pytest.approx(math.log10(2e-8))}


def test_no_exact_cell_and_no_slope_is_no_number(results):
    table = pd.read_csv(results / "rates.csv", dtype={"rank": str})
    table.query("mh < 2").to_csv(results / "rates.csv", index=False)
    pd.read_csv(results / "rates_slopes.csv").query("estimator == 'pod'").to_csv(
        results / "rates_slopes.csv", index=False
    )
    assert summary.rates(results) == {"slope": None, "exact": None}


def test_errors_are_logarithms_of_medians_over_seeds(tmp_path):
    rows = [("exp", "original", "", "rnn", "population", m) for m in (1e-8, 1e-7, 1)]
    rows += [
        ("exp", "causal", "signed", "transformer", "centred", 1e-2),
        ("uniform", "original", "", "rnn", "population", 1),
    ]
    columns = ["target", "alteration", "filter", "model", "recipe", "mse"]
    pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "linear.csv", index=False)
    assert summary.linear(tmp_path) == {"rnn": pytest.approx(-7), "tf_mixed": pytest.approx(-2)}


def test_costs_are_those_of_the_last_run_of_each_stage(tmp_path, monkeypatch):
    runs = [("a", 9.0, 3.0), ("b", 1.0, 0.5), ("a", 2.0, 0.25)]
    log = "".join(json.dumps({"stage": s, "seconds": t, "peak_gb": g}) + "\n" for s, t, g in runs)
    (tmp_path / "log").write_text(log)
    monkeypatch.setattr(estimate, "markdown", lambda seconds: f"{sum(seconds.values())} s")
    costs.main(tmp_path / "log", tmp_path / "costs.md")
    text = (tmp_path / "costs.md").read_text()
    assert (
        text.endswith("3.0 s\n")
        and "| a | 2.0 | 0.25 |" in text
        and "| b | 1.0 | 0.50 |" in text
        and "| **all** | **3** | **0.50** |" in text
    )


def test_no_log_is_told_in_one_line(tmp_path):
    with pytest.raises(SystemExit, match="no stage has run here yet"):
        costs.main(tmp_path / "nowhere")
