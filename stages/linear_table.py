"""Tables 2 and 3, every reading with its exact floors, and the propositions of section 6 in numbers."""

import bootstrap  # noqa: F401

import pandas as pd

from attnrate.analysis import rnn_complexity
from attnrate.analysis.floors import OFFSETS, constant_predictor, floor
from attnrate.core import files, stage
from attnrate.report import tables, tables_linear
from attnrate.targets import linear

PARAMS = ("profile",)
PARTS = ("rnn", "centred", "plain", "learned_filter")
COLUMNS = ["table", "target", "alteration", "filter", "model", "recipe", "mh", "seed", "mse", "floor", "dead"]


def write(args, name, table, caption, layout=None):
    layout = table if layout is None else layout
    files.write_csv(getattr(args, name), table)
    files.write_text(getattr(args, f"{name}_md"), tables.markdown(layout, caption))
    files.write_text(getattr(args, f"{name}_tex"), tables.latex(layout, caption, f"tab:{getattr(args, name).stem}"))


def main(cfg, args):
    parts = [
        pd.read_csv(getattr(args, name), keep_default_na=False, na_values={c: [""] for c in ("mh", "floor")})
        for name in PARTS
    ]
    results = pd.concat(parts)[COLUMNS].astype({"mh": "Int64"})
    files.write_csv(args.out, results)

    exact = pd.DataFrame([
        {
            "table": t.table, "target": t.kernel, "alteration": t.alteration, "filter": t.filter,
            **{f"floor_{o}": floor(t.matrix, o).mse for o in OFFSETS}, "variance": constant_predictor(t.matrix),
            "c_rnn": rnn_complexity.c_rnn(t.matrix), "c_rnn_literal": rnn_complexity.c_rnn(t.matrix, corrected=False),
            "future": rnn_complexity.depends_on_future(t.matrix),
            "singular_value_change": rnn_complexity.singular_value_change(linear.toeplitz(t.rho), t.matrix),
        }
        for t in linear.load(args.targets)
    ])  # fmt: skip
    files.write_csv(args.floors, exact)

    for number in (2, 3):
        long = tables_linear.printed(results, number)
        write(args, f"table{number}", long, tables_linear.caption(number, cfg.profile), tables_linear.layout(long))
    full = tables_linear.readings(results.merge(exact, on=["table", "target", "alteration", "filter"]))
    write(args, "readings", full, f"Every reading of Tables 2 and 3, {cfg.profile} profile: median over seeds [best–worst]; "
          "floors of a linear RNN are exact.")  # fmt: skip


if __name__ == "__main__":
    tables_out = [f"{name}{form}" for name in ("table2", "table3", "readings") for form in ("", "_md", "_tex")]
    stage.run(main, PARAMS, inputs=["targets", *PARTS], outs=["out", "floors", *tables_out, "record"])
