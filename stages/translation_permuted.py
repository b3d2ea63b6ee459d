"""Table 1: go on from the original model with permuted source sentences, as the paper does; and its controls."""

import launcher  # noqa: F401

from attnrate import cores
from attnrate.core import stage
from attnrate.large import parts
from attnrate.translation import model
from attnrate.translation.train import later, train_all


def main(p, to, part):
    cores.set_threads(p.threads)
    sizes = {"vocabulary": p.translation.tokens.vocabulary, **p.translation.model}
    tune, train, weights = p.translation.tune, p.translation.train, stage.data("translation_main")

    def run(variant, seed):
        path = parts.weights(weights, train.parts, f"original_seed{seed}")
        return later(variant, seed, sizes, tune, lambda: model.load(path, **sizes))

    runs = [run(variant, seed) for variant in tune.variants for seed in train.seeds]
    runs = [run for run in runs if parts.holds(part, run.name)]
    tokens = stage.data("translation_tokens") / "tokens.npz"
    train_all(runs, to, tokens, [weights], model=sizes, train=train, device=p.device)


if __name__ == "__main__":
    stage.run(main)
