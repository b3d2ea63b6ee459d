"""BLEU and chrF of translations by sacreBLEU, whose signature says how they were computed."""

from sacrebleu.metrics import BLEU, CHRF


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
