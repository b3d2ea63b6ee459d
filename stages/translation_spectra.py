"""Spectra of the encoder's self-attention: untrained, original, and altered on its own order."""

import launcher  # noqa: F401

import pandas as pd

from attnrate import cores
from attnrate.core import files, stage
from attnrate.large import parts
from attnrate.spectra.measure import measure
from attnrate.translation import model, tokens


def main(p, to):
    cores.set_threads(p.threads)
    sizes = {"vocabulary": p.translation.tokens.vocabulary, **p.translation.model}
    seed, length = p.translation.train.seeds[0], p.translation.spectra.tokens
    given = tokens.load(stage.data("translation_tokens") / "tokens.npz")
    plain = [given["dev_en"], given["test_en"]]
    altered = [tokens.permute(sentences) for sentences in plain]
    original = parts.weights(stage.data("translation_main"), p.translation.train.parts, f"original_seed{seed}")
    permuted = parts.weights(stage.data("translation_permuted"), p.translation.tune.parts, f"permuted_seed{seed}")
    cases = {
        "untrained": (model.build(seed=seed, **sizes), plain),
        "original": (model.load(original, **sizes), plain),
        "permuted": (model.load(permuted, **sizes), altered),
    }
    values, ranks = [], []
    for variant, (trained, sentences) in cases.items():
        rows = model.beginnings(sentences, length)
        found = measure(trained.model.encoder, rows.split(64), "tokens")
        spectra = found.spectra.rename(columns={"k": "index"}).drop(columns="n")
        spectra.insert(0, "variant", variant)
        values.append(spectra)
        ranks.append(
            found.ranks.rename(
                columns={"n": "sentences", "effective": "effective_rank", "effective_sd": "effective_rank_sd"}
            ).assign(variant=variant, tokens=length)
        )
    files.write_csv(to.results / "values.csv", pd.concat(values))
    order = ["variant", "layer", "head", "sentences", "tokens", "effective_rank", "energy90", "energy99"]
    order += ["effective_rank_sd", "energy90_sd", "energy99_sd"]
    files.write_csv(to.results / "ranks.csv", pd.concat(ranks)[order])


if __name__ == "__main__":
    stage.run(main)
