"""The order of stages and the simulated clock, against plans that can be made by hand."""

import pytest

from attnrate.ops.schedule import chains, known, simulate

NEEDS = {"page": {"claims", "table"}, "claims": {"table"}, "table": {"train"}, "train": set(), "figure": {"train"}}


def test_the_longest_chain_counts_hours_and_not_stages():
    assert chains(NEEDS, dict.fromkeys(NEEDS, 1.0)) == {"page": 1, "claims": 2, "table": 3, "train": 4, "figure": 1}
    assert chains(NEEDS, dict.fromkeys(NEEDS, 1.0) | {"figure": 9.0})["train"] == 10


def test_what_is_not_known_is_like_its_stage():
    hours = known(["a@1", "a@2", "a@3", "b"], {"a@1": 1.0, "a@2": 3.0})
    assert hours == {"a@1": 1.0, "a@2": 3.0, "a@3": 2.0, "b": 1 / 3600}


def test_equal_stages_side_by_side_take_their_share():
    upstream = {"start": set(), **{f"run@{i}": {"start"} for i in range(8)}, "end": {f"run@{i}" for i in range(8)}}
    hours = {name: 1.0 for name in upstream}
    needs = {name: "GPU" if "@" in name else "CPU" for name in upstream}
    for gpus, expected in ((1, 10), (2, 6), (3, 5), (8, 3), (9, 3)):
        assert simulate(upstream, hours, needs, {"GPU": gpus, "CPU": 1}).hours == expected
    assert simulate(upstream, hours, needs, {"GPU": 2}).hours == 6  # one kind does it all


def test_no_plan_beats_the_longest_chain_or_the_work():
    upstream = {"a": set(), "b": {"a"}, "c": {"b"}, **{f"d@{i}": set() for i in range(6)}}
    hours = {"a": 2.0, "b": 2.0, "c": 2.0} | {f"d@{i}": 1.0 for i in range(6)}
    plan = simulate(upstream, hours, dict.fromkeys(upstream, "GPU"), {"GPU": 2})
    assert plan.hours == 6  # the chain first, all else beside it
    assert {plan.where[name] for name in "abc"} == {"GPU 0"} and plan.end["a"] == 2
    assert simulate(upstream, hours, dict.fromkeys(upstream, "GPU"), {"GPU": 1}).hours == pytest.approx(12)
    assert simulate({}, {}, {}, {"GPU": 1}).hours == 0
