"""BLEU and chrF of translations by sacreBLEU, whose signature says how they were computed."""

import pandas as pd
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

COMPARED = ["seed", "against", "pairs", "control", "altered", "half_width_control", "half_width_altered", "p_value"]
Translations = dict[tuple[str, int | None], list[str]]  # of a variant and a seed; the source copied has none


def scores(hypotheses: list[str], references: list[str]) -> dict:
    """Columns bleu, chrf (chrF2), signature (of BLEU) and pairs."""
    bleu, chrf = BLEU(), CHRF()
    score = bleu.corpus_score(hypotheses, [references]).score
    return {
        "bleu": score,
        "chrf": chrf.corpus_score(hypotheses, [references]).score,
        "signature": str(bleu.get_signature()),
        "pairs": len(hypotheses),
    }


def compare(control: list[str], altered: list[str], references: list[str]) -> dict:
    """Both BLEUs on the same sentences, and how surely they differ: a paired bootstrap over sentences."""
    test = PairedTest([("control", control), ("altered", altered)], {"BLEU": BLEU()}, [references], "bs", 1000)
    first, second = test()[1]["BLEU"]
    keys = {"pairs": len(references), "control": first.score, "altered": second.score}
    return keys | {"half_width_control": first.ci, "half_width_altered": second.ci, "p_value": second.p_value}


def tables(
    corpus: str, found: Translations, references: list[str], changed: list[int]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """bleu.csv: the scores of every model; changed.csv: the altered order against both controls.

    Those are on the sentences that the altered order changes.
    """
    rows = [
        {"corpus": corpus, "variant": variant, "seed": seed, **scores(hypotheses, references)}
        for (variant, seed), hypotheses in found.items()
    ]
    pairs = [
        {"seed": seed, "against": control}
        | compare(*([text[i] for i in changed] for text in (found[control, seed], altered, references)))
        for (variant, seed), altered in found.items()
        if variant == "permuted" and changed
        for control in ("original", "continued")
        if (control, seed) in found
    ]
    return pd.DataFrame(rows).astype({"seed": "Int64"}), pd.DataFrame(pairs, columns=COMPARED)
