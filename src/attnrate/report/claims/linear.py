"""Findings for section 6: Tables 2 and 3, Propositions 6.1 to 6.3, and the slides' suggestion."""

from pathlib import Path

import pandas as pd

from attnrate.report.claims.ledger import NOT, PARTLY, REPRODUCED, Finding, Untestable, grade_all
from attnrate.report.tables import short
from attnrate.report.tables_linear import HAND_SET, MODELS, PAPER, cell

ORDERING = ("original", ""), ("exchange", ""), ("roll", "")  # alteration, filter
MIXING = ("original", ""), ("causal", "positive"), ("causal", "signed")


def results(folder: Path) -> pd.DataFrame:
    return pd.read_csv(folder / "linear_table/linear.csv", keep_default_na=False, na_values={"floor": [""], "mh": [""]})


def floors(folder: Path) -> pd.DataFrame:
    table = pd.read_csv(folder / "linear_table/floors.csv", keep_default_na=False)
    return table.set_index(["target", "alteration", "filter"])


def get(r: pd.DataFrame, table: int, alteration: str, filter: str = "", model="transformer", recipe="centred") -> dict:
    found = cell(r, table, alteration, filter, model, recipe)
    if not found["n"]:
        raise Untestable(f"{model} was not run on {alteration} {filter} in this profile")
    if alteration == "original" and found["n"] == found["dead"]:
        raise Untestable(f"every seed of {model} got stuck on the original in this profile")
    return found


def spread(*cells: dict) -> str:
    dead = (f", {c['dead']} dead" if c["dead"] else "" for c in cells)
    return "; ".join(f"[{short(c['best'])}, {short(c['worst'])}]{d}" for c, d in zip(cells, dead, strict=True))


def medians(*cells: dict) -> list[str]:
    return [short(c["median"]) for c in cells]


def altered(cells: list[dict], first: str, second: str, holds: list[bool], why: str) -> Finding:
    """The original and two alterations of it, by their names; a case for each of these."""
    original, one, other = medians(*cells)
    measured = f"median {original} → {one} ({first}), {other} ({second})"
    return Finding(measured, spread(*cells), sum(c["n"] for c in cells), grade_all(holds), why)


def prop_6_1(folder: Path, limits: dict) -> Finding:
    exact = floors(folder).loc["exp"]
    future = {a: bool(exact.loc[(a, ""), "future"]) for a in ("exchange", "roll", "permute-kernel")}
    outside = {a: exact.loc[(a, ""), "c_rnn"] == float("inf") for a in future}
    return Finding(
        ", ".join(f"{a}: {'outside' if outside[a] else 'inside'}" for a in future),
        "exact",
        len(future),
        grade_all([future[a] == outside[a] for a in future] + [outside["exchange"], outside["roll"]]),
        "Permuting inputs makes an output depend on a later input; "
        "permuting the kernel itself keeps the target causal.",
    )


def prop_6_2(folder: Path, limits: dict) -> Finding:
    change = floors(folder).loc["exp"].loc[[("exchange", ""), ("roll", "")], "singular_value_change"]
    return Finding(
        f"largest change of a singular value {change.max():.1e}",
        "exact",
        len(change),
        grade_all((change <= limits["change"]).tolist()),
        "A permutation of inputs permutes the columns of the coupling and leaves its singular values.",
    )


def prop_6_3(folder: Path, limits: dict) -> Finding:
    exact = floors(folder).loc["exp"]
    readings = ("original", ""), ("altered-kernel", "positive"), ("causal", "positive")
    gamma, kernel, causal = (exact.loc[reading, "c_rnn"] for reading in readings)
    literal = exact.loc[("original", ""), "c_rnn_literal"]
    return Finding(
        f"C_RNN {gamma:.3g} → {kernel:.3g} for the kernel of (96), {causal:.3g} for the causal convolution",
        f"exact; literal (76) gives {literal:.3g} for e^-s itself",
        3,
        grade_all([c <= limits["gamma"] + 1e-9 for c in (kernel, causal)]),
        "It holds for the kernel the proof ends with, which drops future inputs between (94) and (96), "
        "not for a causal filter.",
    )


def ordering_transformer(folder: Path, limits: dict) -> Finding:
    r = results(folder)
    cells = [get(r, 2, *reading) for reading in ORDERING]
    ratios = [c["median"] / cells[0]["median"] for c in cells[1:]]
    why = (
        f"Ratios of medians {ratios[0]:.2g} and {ratios[1]:.2g}; what the models can represent is the same "
        "(Proposition 6.2), so a larger ratio is training."
    )
    return altered(cells, "exchange", "roll", [x <= limits["factor"] for x in ratios], why)


def ordering_rnn(folder: Path, limits: dict) -> Finding:
    r, exact = results(folder), floors(folder).loc["exp"]
    cells = [get(r, 2, *reading, *MODELS["RNN"]) for reading in ORDERING]
    least = [exact.loc[reading, "floor_free"] for reading in ORDERING[1:]]
    why = f"Structural: no linear RNN gets below {short(least[0])} or {short(least[1])}, whatever its biases."
    return altered(cells, "exchange", "roll", [x >= limits["floor"] for x in least], why)


def paper_number(folder: Path, limits: dict) -> Finding:
    exact = floors(folder).loc["exp"]
    value = PAPER[(2, "ordering", "Altered")][0]
    exchange, roll = (exact.loc[(a, ""), "floor_free"] for a in ("exchange", "roll"))
    return Finding(
        f"floors {short(exchange)} (exchange), {short(roll)} (roll) against the paper's {short(value)}",
        "exact",
        2,
        REPRODUCED if value >= exchange else PARTLY if value >= roll else NOT,
        "The number is below what any linear RNN can reach on the exchange that appendix C describes, "
        "and possible for the roll.",
    )


def mixing_rnn(folder: Path, limits: dict) -> Finding:
    r, exact = results(folder), floors(folder).loc["exp"]
    cells = [get(r, 2, *reading, *MODELS["RNN"]) for reading in MIXING]
    largest = max(limits["factor"] * cells[0]["median"], limits["small"])
    literal = short(exact.loc[("literal", "positive"), "floor_free"])
    why = (
        f"The causal reading has floor 0; the literal x(t+s) has {literal} and is excluded by the paper's own 1.58e-07."
    )
    return altered(cells, "positive", "signed filter", [c["median"] <= largest for c in cells[1:]], why)


def mixing_transformer(folder: Path, limits: dict) -> Finding:
    r = results(folder)
    cells = [get(r, 2, *reading) for reading in MIXING]
    ratios = [c["median"] / cells[0]["median"] for c in cells[1:]]
    by_hand = get(r, 2, "causal", "signed", *HAND_SET)
    why = (
        f"Ratios {ratios[0]:.2g} and {ratios[1]:.2g}: the harm comes with signs in the filter, and it is training's: "
        f"a network of these sizes that is set by hand has an error of {short(by_hand['median'])} there."
    )
    return altered(cells, "positive", "signed filter", [x >= limits["factor"] for x in ratios], why)


def table3_rnn(folder: Path, limits: dict) -> Finding:
    exact = floors(folder).loc["uniform"].loc[("original", "")]
    found = get(results(folder), 3, "original", "", *MODELS["RNN"])
    share, floor, most = found["median"] / exact.variance, exact.floor_free, limits["share"]
    return Finding(
        f"median {short(found['median'])}, {share:.1%} of the variance {short(exact.variance)}; floor {short(floor)}",
        spread(found),
        found["n"],
        REPRODUCED if floor > most * exact.variance else PARTLY if share > most else NOT,
        "The target is a causal kernel that 128 units represent exactly; "
        "the paper's 5.58 is about the variance of y, a constant predictor.",
    )


def table3_transformer(folder: Path, limits: dict) -> Finding:
    r, variance = results(folder), floors(folder).loc[("uniform", "original", ""), "variance"]
    cells = original, permuted = get(r, 3, "original"), get(r, 3, "exchange")
    ratio = permuted["median"] / original["median"]
    learned = max(original["median"], permuted["median"]) <= limits["share"] * variance
    return Finding(
        f"median {' → '.join(medians(*cells))}",
        spread(*cells),
        original["n"] + permuted["n"],
        grade_all([learned, ratio <= limits["factor"]]),
        f"Ratio {ratio:.2g}; a kernel without order is as hard permuted as not.",
    )


def learned_filter(folder: Path, limits: dict) -> Finding:
    r = results(folder)
    original, mixed = get(r, 2, "original"), get(r, 2, "causal", "signed")
    helped = get(r, 2, "causal", "signed", recipe="learned-filter")
    before, harmed, after = medians(original, mixed, helped)
    back = helped["median"] <= limits["factor"] * original["median"]
    return Finding(
        f"median {before} unmixed, {harmed} mixed, {after} with a learned filter",
        spread(original, mixed, helped),
        helped["n"],
        REPRODUCED if back else PARTLY if helped["median"] <= mixed["median"] / 2 else NOT,
        "A causal filter of length 5 in front of the model can undo the mixing exactly; the rest is training.",
    )


EVALUATORS = {
    "prop-6.1": prop_6_1,
    "prop-6.2": prop_6_2,
    "prop-6.3": prop_6_3,
    "ordering-transformer": ordering_transformer,
    "ordering-rnn": ordering_rnn,
    "table2-floor": paper_number,
    "mixing-rnn": mixing_rnn,
    "mixing-transformer": mixing_transformer,
    "table3-rnn": table3_rnn,
    "table3-transformer": table3_transformer,
    "learned-filter": learned_filter,
}
