"""What of section 5 needs no network: the POD truncation to large m_h for many pairings, and sampled matrices."""

import launcher  # noqa: F401

import pandas as pd

from attnrate.core import files, stage
from attnrate.rates import exact


def main(p, to):
    own, target = p.rates.exact, p.rates.target
    pairings = [*(f"dyadic-{own.pairing_seed + i}" for i in range(own.draws)), "same"]
    sizes = {"terms": own.terms, "tau": target.tau, "size": own.size, "seed": target.eval_seed}
    rows = [row for pairing in pairings for row in exact.truncations(pairing, target.alphas, own.mh, **sizes)]
    files.write_csv(to.results / "truncation.csv", pd.DataFrame(rows))
    rows = [
        {"pairing": pairing, "alpha": alpha, "tau": tau, "slope": slope}
        for i, pairing in enumerate(pairings)
        for alpha in target.alphas
        for tau in own.taus
        for slope in [exact.sampled_decay(pairing, alpha, tau, own.inputs, own.pairing_seed + i, target.terms)]
    ]
    files.write_csv(to.results / "sampled.csv", pd.DataFrame(rows))


if __name__ == "__main__":
    stage.run(main)
