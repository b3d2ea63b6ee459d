"""BLEU and chrF of translations by sacreBLEU, whose signature says how they were computed."""

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest


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
