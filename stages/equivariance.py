"""A.1: Ĥ(x ∘ p) = Ĥ(x) ∘ p for random models and permutations, without and with position encoding."""

import launcher  # noqa: F401

import torch

from attnrate import cores
from attnrate.core import files, stage
from attnrate.small.transformer import Transformer

PERMUTATIONS, MODELS = 20, 10


@torch.no_grad()
def deviation(model, tau, seed):
    """Largest |Ĥ(x ∘ p) - Ĥ(x) ∘ p| over the permutations p, relative to the spread of Ĥ(x)."""
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(64, tau, 1, generator=g, dtype=torch.float64)
    y = model(x)
    worst = 0.0
    for _ in range(PERMUTATIONS):
        p = torch.randperm(tau, generator=g)
        worst = max(worst, ((model(x[:, p]) - y[:, :, p]).abs().amax((1, 2, 3)) / y.std((1, 2, 3))).max().item())
    return worst


def main(p, to):
    cores.set_threads(p.threads)
    tau, seed, sizes = p.rates.target.tau, p.rates.target.eval_seed, p.rates.model
    heads = [max(p.rates.constructive.mh)] * MODELS
    plain = Transformer(heads, range(MODELS), **sizes).double()
    encoded = Transformer(heads, range(MODELS), positions=(tau, sizes.n), **sizes).double()
    found = {
        "models": MODELS,
        "permutations": PERMUTATIONS,
        "without_positions": deviation(plain, tau, seed),
        "with_positions": deviation(encoded, tau, seed),
    }
    files.write_json(to.results / "deviation.json", found, digits=3)


if __name__ == "__main__":
    stage.run(main)
