"""Verdicts of several runs side by side."""

import pytest

from attnrate.core import files
from attnrate.ops import turned


def run(path, **verdicts):
    keys = {"effect": 0.5, "interval": [0.25, None], "margin": 1.0}
    files.write_json(path, [{"id": name, "verdict": verdict, **keys} for name, verdict in verdicts.items()])
    return f"{path.stem}={path}"


def test_a_verdict_that_turns_around_fails_and_one_that_opens_does_not(tmp_path, capsys):
    a = run(tmp_path / "a.json", one="reproduced", two="not reproduced", three="partly")
    b = run(tmp_path / "b.json", one="undecided", two="partly", four="reproduced")
    turned.main([a, b])
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "| `one` | 1 | reproduced: 0.5 [0.25, ∞] | undecided: 0.5 [0.25, ∞] |"
    assert lines[5].startswith("| `four` | 1 | not run |") and "1 reproduced, 1 partly" in lines[-1]
    with pytest.raises(SystemExit, match="turned around: two"):
        turned.main([a, b, run(tmp_path / "c.json", two="reproduced")])


@pytest.mark.parametrize(
    ("effect", "interval", "shown"),
    [
        (6.14, [None, None], "undecided: 6.1 [-∞, ∞]"),
        (6.14, [None, 7.0], "undecided: 6.1 [-∞, 7]"),
        (6.14, [-0.25, 7.0], "undecided: 6.1 [-0.25, 7]"),
        (None, None, "undecided"),
    ],
)
def test_an_open_end_has_its_own_sign(effect, interval, shown):
    assert turned.number({"verdict": "undecided", "effect": effect, "interval": interval}) == shown


@pytest.mark.parametrize("given", [[], ["a=x"], ["a", "b=x"]])
def test_two_named_runs_are_needed(given):
    with pytest.raises(SystemExit, match="give two or more runs"):
        turned.main(given)
