"""Table 1: go on from the original model with permuted source sentences.

permuted: from the trained model, as the paper does; continued: as long in the original order; permuted-scratch:
as permuted, but from where the original model itself started, and as long as it.
"""

import launcher  # noqa: F401

from attnrate import cores
from attnrate.core import stage
from attnrate.large import parts
from attnrate.translation import model
from attnrate.translation.train import Run, train_all


def main(p, to, part):
    cores.set_threads(p.threads)
    sizes = {"vocabulary": p.translation.tokens.vocabulary, **p.translation.model}
    tune, train, weights = p.translation.tune, p.translation.train, stage.data("translation_main")

    def run(variant, seed):
        if variant == "permuted-scratch":
            return Run(variant, seed, lambda: model.build(seed=seed, **sizes), permuted=True)
        original = parts.weights(weights, train.parts, f"original_seed{seed}")
        return Run(variant, seed, lambda: model.load(original, **sizes), permuted=variant == "permuted", tune=tune)

    runs = [run(variant, seed) for variant in tune.variants for seed in train.seeds]
    runs = [run for run in runs if parts.holds(part, run.name)]
    tokens = stage.data("translation_tokens") / "tokens.npz"
    train_all(runs, to, tokens, [weights], model=sizes, train=train, device=p.device)


if __name__ == "__main__":
    stage.run(main)
