"""Table 1: go on from the original model with permuted source sentences.

permuted: from the trained model, as the paper does; continued: as long in the original order; permuted-scratch:
as permuted, but from where the original model itself started, and as long as it.
"""

import launcher  # noqa: F401

from attnrate.core import stage
from attnrate.translation import model
from attnrate.translation.train import Run, train_all


def main(p, to):
    stage.set_threads(p.threads)
    sizes = {"vocabulary": p.translation.tokens.vocabulary, **p.translation.model}
    tune, weights = p.translation.tune, stage.data("translation_main")

    def run(variant, seed):
        if variant == "permuted-scratch":
            return Run(variant, seed, lambda: model.build(seed=seed, **sizes), permuted=True)
        original = weights / f"original_seed{seed}.safetensors"
        return Run(variant, seed, lambda: model.load(original, **sizes), permuted=variant == "permuted", tune=tune)

    runs = [run(variant, seed) for variant in tune.variants for seed in p.translation.train.seeds]
    tokens = stage.data("translation_tokens") / "tokens.npz"
    train_all(runs, to, tokens, [weights], model=sizes, train=p.translation.train)


if __name__ == "__main__":
    stage.run(main)
