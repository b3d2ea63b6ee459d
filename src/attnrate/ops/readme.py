"""`make readme`: the tables of README.md and docs/ that come from committed files, each between its markers.

No stage depends on it.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

import networkx as nx
from dvc.repo import Repo

from attnrate.core import files, params
from attnrate.core.errors import UserError
from attnrate.ops import costs, profiles, runlog
from attnrate.report import published, verdicts
from attnrate.report.claims.ledger import UNDECIDED, gate, headline, tally
from attnrate.report.published import Column


class Row(NamedTuple):
    """A table or figure of the paper in the README's table of results."""

    name: str
    leads: dict[str, str]  # what is measured → the claim that has the value
    others: tuple[str, ...]  # claims that are only counted
    paper: str
    stage: str


ROWS = (
    Row(
        "Figure 1",
        {
            "m_h ≥ r": "finite-rank",
            "r = ∞, best network": "rate-network",
            "the kernel alone, no network": "rate-value",
        },
        ("monotone", "rank-order", "rate-by-alpha", "rate-tail", "recipe", "learned-spectrum"),
        "no error from m_h = r on; slopes -0.1 (α = 0.55) and -1 (α = 1)",
        "fig1",
    ),
    Row(
        "Figure 2",
        {"singular values over images": "vit-concentration", "in a pretrained ViT": "pretrained-spread"},
        ("sampled-decay", "vit-low-rank", "pretrained-rank"),
        "they concentrate",
        "fig_vit",
    ),
    Row(
        "Figure 3",
        {"spectra": "vit-convergence", "training error": "vit-error-falls"},
        ("vit-width", "vit-exponent"),
        "spectra converge; training error m_h^-0.27 + 1.05",
        "fig_vit",
    ),
    Row(
        "Table 1",
        {
            "images": "vit-permuted",
            "images, pretrained": "tuned-permuted",
            "text": "translation-order",
            "whole sentences": "translation-sentences",
        },
        (),
        "accuracy 0.98, altered 0.96; BLEU on WMT14 26.85, altered 25.91",
        "table1",
    ),
    Row(
        "Table 2",
        {
            "RNN, order altered": "ordering-rnn",
            "Transformer": "ordering-transformer",
            "RNN, inputs mixed": "mixing-rnn",
            "Transformer, mixed": "mixing-transformer",
        },
        ("table2-floor", "mixing-either", "learned-filter", "filter-control", "rnn-better", "neither"),
        "RNN 1.02e-07 → 3.57e-02; Transformer 2.18e-05 → 2.51e-05; mixed 1.58e-07 and 2.39e-04",
        "linear_table",
    ),
    Row(
        "Table 3",
        {"RNN": "table3-rnn", "Transformer": "table3-transformer"},
        (),
        "RNN 5.58 → 5.24; Transformer 5.43e-04 → 5.36e-04",
        "linear_table",
    ),
    Row(
        "Figures 4–6",
        {"attention against the rule": "attention-weights"},
        ("ff-recovered", "argmax-recovered", "low-loss-rule", "as-stated"),
        "attention is the rule",
        "fig_examples",
    ),
    Row(
        "the theory",
        {"Theorem 4.1": "bound", "Proposition 6.2": "prop-6.2"},
        tuple(
            "equivariance density first-term joint-limit width prop-6.1 theta-rho prop-6.3 mixing-rank rnn-rate".split()
        ),
        "the error is at most the bound (17); a permutation leaves the complexity measures unchanged",
        "rates_table propositions",
    ),
    Row(
        "beyond it",
        {"depth against order": "depth-two", "heads against rank": "heads-trained", "causal mask": "causal-floor"},
        tuple("depth-floor depth-one depth-controls mixing-mass mixing-won-back heads-structure".split()),
        "left open (section 7)",
        "fig_beyond",
    ),
)
ALONE = ("validate", "claims", "page")  # stages with a box of their own in the drawing


def header(columns: list[Column]) -> str:
    having = " and ".join(c.profile for c in columns if c.rows)
    return f"{having.capitalize()} profile. {headline(published.headline(columns))}"


def origin(column: Column) -> str:
    """A sentence on a profile: what its published branches took, or what it would take."""
    if not column.branches:
        (text,) = column.notes()
        return re.sub(rf"{re.escape(column.command)}|attnrate publish all", r"`\g<0>`", text)
    hours, memory = sum(b.seconds for b in column.branches) / 3600, max(b.memory for b in column.branches)
    text = f"{hours:.1f} hours, {memory:.1f} GB ([costs](reports/published/{column.profile}/costs.md))"
    missing = {*costs.branches().values()} - {"report", *(b.name for b in column.branches)}
    text += f", {', '.join(sorted(missing))} not run yet" if missing else ""
    changed = sum(len(b.changed) for b in column.branches)
    return text + (f", the code of {changed} stages has changed since" if changed else "")


def table(head: tuple[str, ...], rows: list[list[str]]) -> str:
    cells = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in cells)


def lead(row: dict) -> str:
    """A claim's numbers, its verdict and whose they are."""
    return f"{row['measured']} ({row['verdict']}; {row['profile']}, n = {row['n']})"


def results(columns: list[Column]) -> str:
    """A row for each table and figure of the paper: our numbers beside the paper's, then the verdicts by profile."""
    by_id, rows = {c["id"]: c for c in published.headline(columns)}, []
    trained = [c["converged"] for c in by_id.values() if c["converged"] is not None and c["verdict"] != UNDECIDED]
    for row in ROWS:
        leads, all_ = {what: by_id[i] for what, i in row.leads.items()}, (*row.leads.values(), *row.others)
        ours = "<br>".join(f"{what}: {lead(c)}" for what, c in leads.items() if c["measured"])
        counted = [tally([c.rows[i] for i in all_ if i in c.rows]) for c in columns]
        rows.append([row.name, ours, row.paper, *counted, f"`dvc repro {row.stage}`"])
    head = ("of the paper", "here", "in the paper", *(c.profile for c in columns), "command")
    origins = "; ".join(f"{c.profile}: {origin(c)}" for c in columns)
    about = (
        "A claim's verdict is that of the largest profile that decides it. "
        f"Of {len(trained)} that are decided on trained models {trained.count(True)} are the same at half the steps; "
        "for the others that was not run. "
        f"{origins[0].upper()}{origins[1:]}."
    )
    return f"{header(columns)} {about}\n\n{table(head, rows)}"


def verdict(row: dict | None) -> str:
    return ", ".join(filter(None, [f"**{row['verdict']}**", gate(row)])) if row else ""


def ledger(columns: list[Column], params: dict) -> str:
    """A row for each claim: numbers, then the verdicts by profile, and why they differ."""
    rows, having = [], [c for c in columns if c.rows]
    for c in published.headline(columns):
        measured = f"{c['measured']} ({c['profile']}, n = {c['n']})" if c["measured"] else ""
        against, needs = "<br>".join(verdicts.against(c)), c["needs"] if c["verdict"] == UNDECIDED else ""
        by_profile = [verdict(column.rows.get(c["id"])) for column in having]
        needs = "<br>".join(filter(None, [needs, published.why(c["id"], columns, params)]))
        rows.append(
            [f"{c['claim']} ({c['ref']})", measured, c["paper"], against, *by_profile, needs, f"`{c['command']}`"]
        )
    names = [f"verdict ({c.profile})" for c in having] if len(having) > 1 else ["verdict"]
    head = ("claim", "measured", "the paper's", "effect [interval] against margin", *names, "needs", "command")
    return f"{header(columns)}\n\n{table(head, rows)}"


def drawing() -> str:
    """The pipeline as a mermaid flowchart, a box for each branch."""
    with Repo() as repo:
        graph = repo.index.graph  # edges lead from a stage to what it needs
        box = {s: s.addressing if s.addressing in ALONE else s.meta["branch"] for s in graph}
        edges = {(box[up], box[s]) for s, up in graph.edges if box[up] != box[s]}
    sizes = {name: list(box.values()).count(name) for name in sorted(set(box.values()))}
    number = {name: i for i, name in enumerate(sizes, 1)}
    labels = {n: n if n in ALONE else f"{n}<br>{size} stages" for n, size in sizes.items()}
    direct = sorted(nx.transitive_reduction(nx.DiGraph(edges)).edges)
    lines = [*(f'  node{number[n]}["{label}"]' for n, label in labels.items())]
    lines += [f"  node{number[a]} --> node{number[b]}" for a, b in direct]
    return "\n".join(["```mermaid", "flowchart LR", *lines, "```"])


def pages() -> dict[str, dict[str, str]]:
    """File → marker → what stands there."""
    claims, runs, paper = files.read_json("reports/claims.json"), runlog.kept(), files.read_json(costs.HOURS)
    if not runs:
        raise UserError(f"{runlog.KEPT} is missing; `make repro` writes it")
    tops = {name: params.read(f"profiles/{name}.yaml") for name in ("smoke", "desk", "paper")}
    columns = published.columns(claims)
    return {
        "README.md": {"results": results(columns), "costs": costs.by_branch(runs, costs.branches())},
        "docs/ledger.md": {"ledger": ledger(columns, params.read("params.yaml"))},
        "docs/performance.md": {"ratios": Path("benchmarks/results.md").read_text(encoding="utf-8").strip()},
        "docs/cluster.md": {"wall": costs.wall(paper)},
        "docs/dag.md": {"dag": drawing()},
        "docs/profiles.md": {"profiles": profiles.table(params.read("params.yaml"), tops)},
    }


def fill(page: str, text: str, parts: dict[str, str]) -> str:
    """text with each part between the markers of its name."""
    for name, content in parts.items():
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        pattern = re.compile(f"{begin}.*?{end}", re.DOTALL)
        if len(pattern.findall(text)) != 1:
            raise UserError(f"{page} should hold {begin} and then {end}, once")
        text = pattern.sub(lambda _, new=f"{begin}\n{content}\n{end}": new, text)
    return text


def main() -> None:
    try:
        old = {page: (Path(page).read_text(encoding="utf-8"), parts) for page, parts in pages().items()}
        new = {page: fill(page, text, parts) for page, (text, parts) in old.items()}
    except FileNotFoundError as e:
        sys.exit(f"{e.filename} is missing; run this in the repository, after `make repro`")
    except UserError as e:
        sys.exit(str(e))
    for page, text in new.items():
        if text != old[page][0]:
            files.write_text(page, text)


if __name__ == "__main__":
    main()
