"""Findings for section 6.1, Table 1, on English-German."""

from dataclasses import replace
from pathlib import Path

import pandas as pd

from attnrate.core.files import read_json
from attnrate.report.claims.ledger import Criterion, Finding, Undecided
from attnrate.report.table_translation import corpus_name

LEAST = 1e-3  # p-value of a bootstrap of 1,000 samples


def order(results: Path, rule: Criterion) -> Finding:
    found = in_both_orders(results / "translation_bleu", results / "translation_tokens", rule)
    corpus = " The corpus decides: whole sentences have a row of their own, `translation-sentences`."
    return replace(found, why=found.why + corpus)


def sentences(results: Path, rule: Criterion) -> Finding:
    found = [in_both_orders(folder, folder, rule) for folder in sorted(results.glob("translation_beside/*"))]
    if not found:
        raise Undecided("three seeds of a corpus in translation.beside.corpora, about an hour on 2 cores")
    measured, why = ("; ".join(getattr(f, name) for f in found) for name in ("measured", "why"))
    return Finding(measured, [part for f in found for part in f.parts], why, found[0].n)


def in_both_orders(folder: Path, tokens: Path, rule: Criterion) -> Finding:
    table = pd.read_csv(folder / "bleu.csv")
    bleu = table.groupby("variant").bleu.mean()
    copy, original, altered = (bleu[name] for name in ("copy", "original", "permuted"))
    name = corpus_name(table)
    if original < copy + rule.limits["learned"]:
        found = f"BLEU {original:.2f}, copying the source {copy:.2f}; {name}"
        raise Undecided(f"a model that has learned to translate ({found})")
    control = "continued" if "continued" in bleu else "original"
    seeds = table[table.variant.isin([control, "permuted"])].pivot(index="seed", columns="variant", values="bleu")
    changed = pd.read_csv(folder / "changed.csv").query("against == @control")
    same = read_json(tokens / "permuted.json")["unchanged"]["test"]
    compared = ", ".join(
        f"{r.control:.2f} → {r.altered:.2f}, p {'≤' if r.p_value <= LEAST else '='} {r.p_value:.1g}"
        for r in changed.itertuples()
    )
    trained_on = f", {bleu[control]:.2f} trained on as long" if control == "continued" else ""
    part = "" if folder.name == "translation_bleu" else name
    return Finding(
        f"BLEU {original:.2f} original{trained_on}, {altered:.2f} altered, on {name}",
        [rule.part(part, seeds[control] - seeds.permuted)],
        f"{same} of {table.pairs.max()} test sentences are too short to change; on the others, by a paired bootstrap "
        f"over sentences, {compared}. Before it has seen the new order, the trained model scores "
        f"{bleu['unadapted']:.2f}.",
        len(seeds),
    )


EVALUATORS = {"translation-order": order, "translation-sentences": sentences}
