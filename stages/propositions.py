"""Theorem A.3, Propositions 6.2 and 6.3, the rate of D.1 and (94) to (98), in double precision."""

import launcher  # noqa: F401

import pandas as pd

from attnrate.core import files, stage
from attnrate.linear.targets import FILTERS
from attnrate.propositions import density, mixing, order, recurrent


def main(p, to):
    own = p.linear.target
    filters = [(name, own.filter_seed + i) for name in FILTERS for i in range(own.draws)]
    files.write_json(to.results / "density.json", density.check())
    files.write_csv(to.results / "order.csv", pd.DataFrame(order.rows()))
    files.write_csv(to.results / "filters.csv", pd.DataFrame([recurrent.filter_row(*f) for f in filters]))
    rnn = {
        "counter_examples": recurrent.counter_examples(),
        "rates": recurrent.rates(filters),
        "rough": {str(gamma): recurrent.rough(gamma) for gamma in recurrent.ROUGH},
    }
    files.write_json(to.results / "rnn.json", rnn)
    files.write_csv(to.results / "mixing.csv", pd.DataFrame([mixing.row(*f, own.tau) for f in filters]))


if __name__ == "__main__":
    stage.run(main)
