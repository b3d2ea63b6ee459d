"""Verdicts in words: each part against its margin."""

import pytest

from attnrate.report import verdicts

PART = {"name": "roll", "effect": 0.2, "interval": [0.1, None], "test": "below", "margin": 0.5, "replicates": 5}
PART |= {"outcome": "undecided"}


@pytest.mark.parametrize(("dead", "wanted"), [(0, ""), (1, ", 1 of 5 stuck"), (5, ", 5 of 5 stuck")])
def test_a_part_says_how_many_of_its_runs_got_stuck(dead, wanted):
    row = {"unit": "", "parts": [PART | {"dead": dead}, {"name": "structurally", "outcome": "fails"}]}
    line = f"roll: 0.2 [0.1, ∞], to be below 0.5{wanted}: undecided"
    assert verdicts.against(row) == [line, "structurally: fails"]
