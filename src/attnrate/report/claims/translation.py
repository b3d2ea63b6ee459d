"""Findings for section 6.1, Table 1, on English-German."""

from pathlib import Path

import pandas as pd

from attnrate.report.claims.ledger import NOT, PARTLY, REPRODUCED, Finding, Untestable
from attnrate.report.table_translation import corpus_name


def order(results: Path, limits: dict) -> Finding:
    table = pd.read_csv(results / "translation_bleu/bleu.csv")
    bleu = table.groupby("variant").bleu.mean()
    copy, original, altered = (bleu[name] for name in ("copy", "original", "permuted"))
    if original < copy + limits["learned"]:
        found = f"BLEU {original:.2f}, copying the source {copy:.2f}; {corpus_name(table)}"
        raise Untestable(f"the original model has not learned to translate in this profile ({found})")
    control = "continued" if "continued" in bleu else "original"
    reference = max(original, bleu[control])
    seeds = table[table.variant.isin([control, "permuted"])].pivot(index="seed", columns="variant", values="bleu")
    drop, drops = reference - altered, seeds[control] - seeds.permuted
    spread = f"drops {drops.min():.2f} to {drops.max():.2f} over seeds" if len(drops) > 1 else "one seed, no spread"
    why = f"Before it has seen the new order, the trained model scores {bleu['unadapted']:.2f}."
    if control == "continued":
        trained_on, change = f", {bleu[control]:.2f} original trained on as long", altered - original
        why += f" Against the original without that training, as the paper compares, BLEU changes by {change:+.2f}."
    else:
        trained_on = ""
        why += " The original has had fewer steps: variants has no `continued` to control for that."
    return Finding(
        f"BLEU {original:.2f} original{trained_on}, {altered:.2f} altered, on {corpus_name(table)}",
        spread,
        len(drops),
        REPRODUCED if drop <= limits["near"] else PARTLY if drop <= limits["far"] else NOT,
        why,
    )


EVALUATORS = {"translation-order": order}
