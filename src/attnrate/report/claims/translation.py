"""Findings for section 6.1, Table 1, on English-German."""

from dataclasses import replace
from pathlib import Path

import pandas as pd

from attnrate.core.files import read_json
from attnrate.report.claims.ledger import Criterion, Finding, Undecided
from attnrate.report.table_translation import corpus_name

LEAST = 1e-3  # p-value of a bootstrap of 1,000 samples


def order(results: Path, rule: Criterion) -> Finding:
    folder = results / "translation_bleu"
    half = [pd.read_csv(path) for path in sorted(results.glob("translation_gate/*/bleu.csv"))]
    table = pd.concat([pd.read_csv(folder / "bleu.csv"), *half])
    found = in_both_orders(table, folder, results / "translation_tokens", rule)
    corpus = " The corpus counts too: whole sentences have a row of their own, `translation-sentences`."
    return replace(found, why=found.why + corpus)


def sentences(results: Path, rule: Criterion) -> Finding:
    folders = sorted(results.glob("translation_beside/*"))
    found = [in_both_orders(pd.read_csv(folder / "bleu.csv"), folder, folder, rule) for folder in folders]
    if not found:
        raise Undecided("three seeds of a corpus in translation.beside.corpora, about an hour on 2 cores")
    measured, why = ("; ".join(getattr(f, name) for f in found) for name in ("measured", "why"))
    return Finding(measured, [part for f in found for part in f.parts], why, found[0].n)


def in_both_orders(table: pd.DataFrame, folder: Path, tokens: Path, rule: Criterion) -> Finding:
    """Of the runs, and of those that went on for half as long, if there are any."""
    bleu = table.groupby("variant").bleu.mean()
    copy, original, altered = (bleu[name] for name in ("copy", "original", "permuted"))
    name = corpus_name(table)
    if original < copy + rule.limits["learned"]:
        found = f"BLEU {original:.2f}, copying the source {copy:.2f}; {name}"
        raise Undecided(f"a model that has learned to translate ({found})")
    control = "continued" if "continued" in bleu else "original"
    seeds = table.dropna(subset="seed").pivot(index="seed", columns="variant", values="bleu")
    full, before = seeds[control] - seeds.permuted, [f"{control}-half", "permuted-half"]
    gated = {*before} <= {*seeds} and seeds[before].notna().all(axis=None)  # all parts of the gate have run
    half = (seeds[before[0]] - seeds[before[1]]).tolist() if gated else None
    changed = pd.read_csv(folder / "changed.csv").query("against == @control")
    same = read_json(tokens / "permuted.json")["unchanged"]["test"]
    compared = ", ".join(
        f"{r.control:.2f} → {r.altered:.2f}, p {'≤' if r.p_value <= LEAST else '='} {r.p_value:.1g}"
        for r in changed.itertuples()
    )
    trained_on = f", {bleu[control]:.2f} trained on as long" if control == "continued" else ""
    shorter = f" After half as many further steps the drop is {sum(half) / len(half):.2f} BLEU." if half else ""
    part = "" if folder.name == "translation_bleu" else table.corpus.iloc[0]
    return Finding(
        f"BLEU {original:.2f} original{trained_on}, {altered:.2f} altered, on {name}",
        [rule.part(part, full, half)],
        f"{same} of {table.pairs.max()} test sentences are too short to change; on the others, by a paired bootstrap "
        f"over sentences, {compared}. Before it has seen the new order, the trained model scores "
        f"{bleu['unadapted']:.2f}.{shorter}",
        len(full),
    )


EVALUATORS = {"translation-order": order, "translation-sentences": sentences}
