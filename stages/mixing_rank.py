"""D.3: singular values of ρ and of the mixed ρ̃, by quadrature, in closed form and on the paper's grid."""

import launcher  # noqa: F401

from attnrate.core import files, stage
from attnrate.linear import mixing_rank


def main(p, to):
    result = {"paper": {"rho": [1, 1], "mixed": [1.265, 0.5, 0.4]}, "exact": mixing_rank.EXACT}
    for name, kernel in (("rho", mixing_rank.rho), ("mixed", mixing_rank.mixed)):
        values = mixing_rank.by_quadrature(kernel)
        result.setdefault("quadrature", {})[name] = values[:4].round(12) + 0.0  # no -0
        result.setdefault("rank", {})[name] = int((values > 1e-9).sum())
        result.setdefault("grid_256", {})[name] = mixing_rank.by_grid(kernel)[:4].round(12) + 0.0
    files.write_json(to.results / "values.json", result, digits=10)


if __name__ == "__main__":
    stage.run(main)
