"""Verdicts, effects and margins in signs and words: what the picture of the ledger, the page and the README share."""

from math import inf, isinf, isnan, nan

from attnrate.report.claims.ledger import NOT, PARTLY, REPRODUCED, UNDECIDED, number
from attnrate.report.claims.statistics import FAILS, HOLDS

SIGNS = {REPRODUCED: "✓", PARTLY: "≈", NOT: "✗", UNDECIDED: "?"}
MEANING = {
    REPRODUCED: "every part holds",
    PARTLY: "some of the cases named beforehand hold, the others fail",
    NOT: "a part fails, or every named case",
    UNDECIDED: "these results leave it open; it says what it needs",
}
INFINITE = {("below", FAILS): inf, ("below", HOLDS): -inf, ("above", FAILS): -inf, ("above", HOLDS): inf}


def drawn(row: dict) -> list[dict]:
    """The parts of a claim that have an effect; the others are exact."""
    return [part for part in row["parts"] if "test" in part]


def deciding(row: dict) -> dict | None:
    """The part whose effect, interval and margin the row has."""
    keys = ("effect", "interval", "margin", "replicates")
    return next((part for part in drawn(row) if all(part[k] == row[k] for k in keys)), None)


def ends(part: dict) -> tuple[float, float, float]:
    """Lower end, effect, upper end; JSON has no infinities, so the test and its outcome say which one a gap was."""
    (low, high), effect, infinite = part["interval"], part["effect"], INFINITE.get((part["test"], part["outcome"]), nan)
    if effect is None and isnan(infinite):  # open
        infinite = inf if low is not None else -inf if high is not None else nan
    elif effect is None:  # decided: all of the interval is on one side
        low, high = (infinite if v is None else v for v in (low, high))
    effect = infinite if effect is None else effect
    return -inf if low is None else low, effect, inf if high is None else high


def value(v: float, unit: str) -> str:
    if isnan(v) or isinf(v):
        return "?" if isnan(v) else "∞" if v > 0 else "0" if unit == "ratio" else "-∞"
    return number(v, unit)


def effect(part: dict, unit: str) -> str:
    """The effect and its interval: 1.2 [0.9, 1.6]."""
    low, middle, high = (value(v, unit) for v in ends(part))
    return f"{middle} (n = {part['replicates']})" if part["replicates"] < 2 else f"{middle} [{low}, {high}]"


def margin(part: dict, unit: str) -> str:
    """What the effect must be: above 3."""
    how = {"above": "above ", "below": "below ", "equal": "within a factor of " if unit == "ratio" else "within ±"}
    return how[part["test"]] + number(part["margin"], unit)


def stuck(part: dict) -> str:
    """How many of a part's runs died."""
    return f"{part['dead']} of {part['replicates']} stuck" if part.get("dead") else ""


def against(row: dict) -> list[str]:
    """A line for each part of a claim: its effect and interval against its margin, and its outcome."""
    lines = []
    for part in row["parts"]:
        words = [part["name"] or "exact"] if "test" not in part else [part["name"]] if part["name"] else []
        if "test" in part:
            judged = [effect(part, row["unit"]), f"to be {margin(part, row['unit'])}", stuck(part)]
            words.append(", ".join(filter(None, judged)))
        lines.append(": ".join([*words, part["outcome"]]))
    return lines
