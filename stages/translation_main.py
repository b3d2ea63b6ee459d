"""The original Transformer on English-German, once for each seed."""

import launcher  # noqa: F401

from attnrate import cores
from attnrate.core import stage
from attnrate.large.parts import holds
from attnrate.translation.train import original, train_all


def main(p, to, part):
    cores.set_threads(p.threads)
    sizes = {"vocabulary": p.translation.tokens.vocabulary, **p.translation.model}
    runs = [original(seed, sizes) for seed in p.translation.train.seeds]
    tokens = stage.data("translation_tokens") / "tokens.npz"
    runs = [run for run in runs if holds(part, run.name)]
    train_all(runs, to, tokens, [], model=sizes, train=p.translation.train, device=p.device)


if __name__ == "__main__":
    stage.run(main)
