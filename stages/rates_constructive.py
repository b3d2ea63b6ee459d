"""The network of the proof of Theorem 4.1 on every (pairing, α, r, m_h), and a sweep of its width m_FF."""

import launcher  # noqa: F401

from itertools import chain

import pandas as pd

from attnrate import cores
from attnrate.core import files, stage
from attnrate.rates import constructive, pod, theory

WIDTH, POWERS = 32, (1, 2, 5)  # m_FF = 32 m_h for the network, and also 32 m_h² and 32 m_h^5 for the bound


def main(p, to):
    cores.set_threads(p.threads)
    own, n = p.rates.constructive, p.rates.model.n
    targets = pod.load_grid(stage.data("targets") / "pod", p.rates.target)

    def errors(target):
        return [constructive.errors(target, mh, **p.rates.model) for mh in own.mh]

    files.write_csv(to.results / "errors.csv", pd.DataFrame(chain(*cores.side_by_side(errors, targets))))

    def widths(alpha):  # m_h = r: the first term of (17) is zero, the second remains
        target = pod.of_rank(alpha, own.width_rank, targets[0].x)
        return [{"width": w, **constructive.errors(target, own.width_rank, n=n, width=w)} for w in own.widths]

    found = cores.side_by_side(widths, p.rates.target.alphas)
    files.write_csv(to.results / "widths.csv", pd.DataFrame(chain(*found)))

    def joint(target):  # section 4.3: both terms of (17) fall where m_FF grows fast enough with m_h
        rows = []
        for mh in (m for m in own.mh if m & (m - 1) == 0):
            width = WIDTH * mh
            found = constructive.errors(target, mh, n=n, width=width)
            sizes = (target.sigma, target.frequencies, target.alpha, mh)
            along = {f"bound_{k}": theory.bound(*sizes, WIDTH * mh**k, target.x.shape[1], "literal") for k in POWERS}
            rows.append({"width": width, **found, **along})
        return rows

    found = cores.side_by_side(joint, [t for t in targets if t.rank == "inf" and t.alpha > 1])
    files.write_csv(to.results / "joint.csv", pd.DataFrame(chain(*found)))


if __name__ == "__main__":
    stage.run(main)
