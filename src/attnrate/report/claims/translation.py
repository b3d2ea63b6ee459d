"""Findings for section 6.1, Table 1, on English-German."""

from pathlib import Path

import pandas as pd

from attnrate.core.files import read_json
from attnrate.report.claims.ledger import Criterion, Finding, Undecided
from attnrate.report.table_translation import corpus_name


def order(results: Path, rule: Criterion) -> Finding:
    table = pd.read_csv(results / "translation_bleu/bleu.csv")
    bleu = table.groupby("variant").bleu.mean()
    copy, original, altered = (bleu[name] for name in ("copy", "original", "permuted"))
    name = corpus_name(table)
    if original < copy + rule.limits["learned"]:
        found = f"BLEU {original:.2f}, copying the source {copy:.2f}; {name}"
        raise Undecided(f"a model that has learned to translate ({found})")
    control = "continued" if "continued" in bleu else "original"
    seeds = table[table.variant.isin([control, "permuted"])].pivot(index="seed", columns="variant", values="bleu")
    changed = pd.read_csv(results / "translation_bleu/changed.csv").query("against == @control")
    same = read_json(results / "translation_tokens/permuted.json")["unchanged"]["test"]
    compared = ", ".join(f"{r.control:.2f} → {r.altered:.2f}, p = {r.p_value:.1g}" for r in changed.itertuples())
    trained_on = f", {bleu[control]:.2f} trained on as long" if control == "continued" else ""
    return Finding(
        f"BLEU {original:.2f} original{trained_on}, {altered:.2f} altered, on {name}",
        [rule.part("", seeds[control] - seeds.permuted)],
        f"{same} of {table.pairs.max()} test sentences are too short to change; on the others, by a paired bootstrap "
        f"over sentences, {compared}. Before it has seen the new order, the trained model scores "
        f"{bleu['unadapted']:.2f}. This is about one corpus: sentences (translation.data.corpus=help) may lose less.",
        len(seeds),
    )


EVALUATORS = {"translation-order": order}
