"""When does mixing hurt? Filters that span the share ν of negative mass, without and with a learned filter in front."""

import launcher  # noqa: F401

import pandas as pd

from attnrate import cores
from attnrate.beyond import filters
from attnrate.core import files, stage
from attnrate.linear import handset, targets
from attnrate.linear.train import fresh_mse, result_row, run_transformer, train_rnn


def main(p, to):
    cores.set_threads(p.threads)
    own, recipe, model, test = p.beyond.filters, p.linear.recipes.centred, p.linear.model, p.linear.eval
    spanning = filters.spanning(own.shares, p.linear.target.tau, own.filter_seed)
    cells = [(t, own.seed + t.draw) for t in spanning]
    parts = [
        run_transformer(cells, own.mh, name, recipe, model, own.train, test)[0] for name in ("mixing", "learned-filter")
    ]
    _, mse, _ = train_rnn(*zip(*cells, strict=True), recipe="population", bias=True, batch=own.train.batch, **own.rnn)
    rows = [result_row(t, "rnn-bias", "population", s, e) for (t, s), e in zip(cells, mse, strict=True)]
    for t in spanning:
        network = handset.build(filters.kernel(t), **model)
        rows.append(result_row(t, "hand-set", "constructive", 0, fresh_mse(network, [t], **test)[0]))
    errors = pd.concat([*parts, pd.DataFrame(rows)])
    share = {t.draw: filters.negative_mass(filters.kernel(t)) for t in spanning}
    files.write_csv(to.results / "errors.csv", errors.assign(nu=errors.draw.map(share)))
    ledger = [t for t in targets.load(stage.data("targets") / "linear.npz") if t.name.startswith("exp/causal")]
    known = [{"filter": t.filter, "draw": t.draw, "nu": filters.negative_mass(filters.kernel(t))} for t in ledger]
    files.write_csv(to.results / "ledger.csv", pd.DataFrame(known))


if __name__ == "__main__":
    stage.run(main)
