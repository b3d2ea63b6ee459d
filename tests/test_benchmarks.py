"""Every benchmark has goals and runs at a tiny size; the committed table is that of the committed numbers."""

import importlib
import json
import math

import pytest

from attnrate.ops import costs
from benchmarks.common import BENCHMARKS, FOLDER, RATIOS, ROOT, Row, markdown, merge
from benchmarks.dag import BUDGETS, branches, overhead
from benchmarks.growth import Curve, rows
from benchmarks.rates import seconds_to


@pytest.mark.parametrize("name", BENCHMARKS)
def test_it_runs_and_has_a_goal(name, tmp_path):
    options = {"out": tmp_path} if name == "growth" else {}
    found = list(importlib.import_module(f"benchmarks.{name}").run(quick=True, **options))
    assert any(row.goal is not None for row in found)
    assert all(
        row.value is None or (math.isfinite(row.value) and row.value >= 0)
        for row in found
        if "exponent" not in row.name
    )
    results = merge(tmp_path / "results.json", {name: [row.record() for row in found]})
    table = markdown(results, [name])
    assert all(row.name in table for row in found)


@pytest.mark.parametrize(
    ("value", "sense", "met"), [(4.0, "≥", True), (3.9, "≥", False), (4.0, "≤", True), (4.1, "≤", False)]
)
def test_a_goal_is_met_on_its_side(value, sense, met):
    assert Row("a", "b", value, 4.0, sense).met is met


def test_a_run_replaces_its_own_results_only(tmp_path):
    path = tmp_path / "results.json"
    merge(path, {"rnn": [Row("old", "", 1.0, 2.0).record()], "vit": [Row("kept", "", 1.0, 2.0).record()]})
    found = merge(path, {"rnn": [Row("new", "", 3.0, 2.0).record()]})["benchmarks"]
    assert [r["name"] for r in found["vit"] + found["rnn"]] == ["kept", "new"]
    assert [r["met"] for r in found["vit"] + found["rnn"]] == [False, True]


def test_a_full_run_is_split_into_branches_and_the_rest(tmp_path):
    log = tmp_path / "log"
    seconds = {"vit_sweep@qk-1": 120.0, "translation_main@all": 60.0, "translation_bleu": 30.0, "linear_rnn": 60.0}
    log.write_text("".join(json.dumps({"stage": s, "seconds": t, "peak_gb": 1}) + "\n" for s, t in seconds.items()))
    assert overhead(log, 300.0) == pytest.approx(10.0)
    minutes = {row.name.removeprefix("full laptop run: "): row.value for row in branches(log)}
    some = {"Tables 2 and 3": 1, "CIFAR10": 2, "English-German": 1.5}
    assert minutes == dict.fromkeys(BUDGETS, 0) | some


def test_every_branch_but_the_report_has_a_budget():
    assert set(costs.branches(ROOT / "dvc.yaml").values()) == {*BUDGETS, "report"}


def test_time_to_an_error_is_interpolated():
    runs = [(1.0, 1e-2), (10.0, 1e-4)]
    assert seconds_to(1e-3, runs) == pytest.approx(10**0.5)
    assert seconds_to(1e-4, runs) == pytest.approx(10.0)


def test_exponents_are_those_of_the_curve():
    sizes = [1, 2, 4, 8]
    time, memory = rows(Curve("a", "τ", 1, sizes, [n**2.0 for n in sizes], [3.0 * n for n in sizes]))
    assert (time.value, time.met) == (pytest.approx(2), False)
    assert (memory.value, memory.met) == (pytest.approx(1), True)


def test_the_committed_tables_are_those_of_the_committed_numbers():
    results = json.loads((FOLDER / "results.json").read_text())
    assert set(results["benchmarks"]) == set(BENCHMARKS)
    assert (FOLDER / "results.md").read_text() == markdown(results, RATIOS)
    assert (FOLDER / "growth.md").read_text() == markdown(results, ["growth"])
