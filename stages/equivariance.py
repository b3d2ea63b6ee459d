"""A.1: Ĥ(x ∘ p) = Ĥ(x) ∘ p for random models and permutations, without and with position encoding."""

import bootstrap  # noqa: F401

import torch

from attnrate.core import files, stage
from attnrate.models.transformer import Transformer
from attnrate.schemas.rates import Rates

PARAMS = ("profile", "threads", "rates.train_mh", "rates.tau", "rates.n", "rates.width", "rates.eval_seed")


@torch.no_grad()
def deviation(model, tau, seed, permutations=20):
    """Largest |Ĥ(x ∘ p) - Ĥ(x) ∘ p| over 20 permutations p, relative to the spread of Ĥ(x)."""
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(64, tau, 1, generator=g, dtype=torch.float64)
    y = model(x)
    worst = 0.0
    for _ in range(permutations):
        p = torch.randperm(tau, generator=g)
        worst = max(worst, ((model(x[:, p]) - y[:, :, p]).abs().amax((1, 2, 3)) / y.std((1, 2, 3))).max().item())
    return worst


def main(cfg, args):
    p, seeds = cfg.rates, list(range(10))
    heads = [max(p.train_mh)] * len(seeds)
    shape = {"n": p.n, "width": p.width}
    plain = Transformer(heads, seeds, **shape).double()
    encoded = Transformer(heads, seeds, positions=(p.tau, p.n), **shape).double()
    files.write_json(args.out, {
        "models": len(seeds), "permutations": 20,
        "without_positions": deviation(plain, p.tau, p.eval_seed),
        "with_positions": deviation(encoded, p.tau, p.eval_seed),
    }, digits=3)  # fmt: skip


if __name__ == "__main__":
    stage.run(main, PARAMS, {"rates": Rates}, outs=["out", "record"])
