"""Tables 2 and 3, every reading with its exact floors, and the propositions of section 6 in numbers."""

import launcher  # noqa: F401

import pandas as pd

from attnrate.core import files, stage
from attnrate.linear import complexity, targets
from attnrate.report import tables, tables_linear

PARTS = ("linear_rnn", "linear_train/centred", "linear_train/plain", "linear_mixing/bare", "linear_mixing/filtered")
PARTS += ("linear_handset",)
COLUMNS = ["table", "target", "alteration", "filter", "model", "recipe", "draw", "mh", "seed", "mse", "floor", "dead"]
COLUMNS += ["mse_half", "variance"]


def main(p, to):
    empty = {"keep_default_na": False, "na_values": {c: [""] for c in ("mh", "floor", "mse_half")}}
    parts = [pd.read_csv(stage.results(name) / "errors.csv", **empty) for name in PARTS]
    results = pd.concat(parts)[COLUMNS].astype({"mh": "Int64"})
    files.write_csv(to.results / "linear.csv", results)
    exact = pd.DataFrame(complexity.row(t) for t in targets.load(stage.data("targets") / "linear.npz"))
    files.write_csv(to.results / "floors.csv", exact)

    for number in (2, 3):
        long = tables_linear.printed(results, number)
        tables.save(
            f"table{number}", long, tables_linear.caption(results, number, p.profile), tables_linear.layout(long)
        )
    full = tables_linear.readings(results.merge(exact, on=["table", "target", "alteration", "filter", "draw"]))
    caption = f"Every reading of Tables 2 and 3, {p.profile} profile: median over seeds [best–worst]; "
    tables.save("table2_readings", full, caption + "floors of a linear RNN are exact.")


if __name__ == "__main__":
    stage.run(main)
