"""What of section 5 needs no network: the POD truncation to large m_h for many pairings, and sampled matrices."""

import launcher  # noqa: F401

from itertools import chain

import pandas as pd

from attnrate import cores
from attnrate.core import files, stage
from attnrate.rates import exact


def main(p, to):
    own, target = p.rates.exact, p.rates.target
    pairings = [*(f"dyadic-{own.pairing_seed + i}" for i in range(own.draws)), "same"]
    sizes = {"terms": own.terms, "tau": target.tau, "size": own.size, "seed": target.eval_seed}

    def both(i):
        pairing, seed = pairings[i], own.pairing_seed + i
        sampled = [
            {"pairing": pairing, "alpha": alpha, "tau": tau, "slope": slope}
            for alpha in target.alphas
            for tau in own.taus
            for slope in [exact.sampled_decay(pairing, alpha, tau, own.inputs, seed, target.terms)]
        ]
        return exact.truncations(pairing, target.alphas, own.mh, **sizes), sampled

    truncated, sampled = zip(*cores.side_by_side(both, range(len(pairings))), strict=True)
    files.write_csv(to.results / "truncation.csv", pd.DataFrame(chain(*truncated)))
    files.write_csv(to.results / "sampled.csv", pd.DataFrame(chain(*sampled)))


if __name__ == "__main__":
    stage.run(main)
