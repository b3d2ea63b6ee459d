"""Tables as Markdown and LaTeX (booktabs), with a caption that names data, profile and seeds."""

from pathlib import Path

import pandas as pd

from attnrate.core import files

TEX = {c: f"\\{c}" for c in "&%_#"} | {"^": r"\textasciicircum{}", "–": "--"}
SYMBOLS = {"ρ": "rho", "θ": "theta", "τ": "tau", "≤": "le", "≥": "ge", "×": "times", "∞": "infty", "→": "to"}
TEX |= {c: f"$\\{name}$" for c, name in SYMBOLS.items()}


def short(value: float) -> str:
    """Three significant digits, in the paper's notation."""
    return "" if pd.isna(value) else f"{value:.2e}" if 0 < value < 1e-2 else f"{value:.3g}"


def markdown(table: pd.DataFrame, caption: str) -> str:
    rows = [list(table.columns), ["---"] * table.shape[1], *table.astype(str).values.tolist()]
    lines = ("| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in rows)
    return "\n".join([caption, "", *lines, ""])


def latex(table: pd.DataFrame, caption: str, label: str) -> str:
    def escape(text: str) -> str:
        return "".join(TEX.get(c, c) for c in text)

    def line(row) -> str:
        return " & ".join(escape(str(c)) for c in row) + r" \\"

    head = [r"\begin{table}", r"\centering", rf"\caption{{{escape(caption)}}}", rf"\label{{{label}}}"]
    head += [rf"\begin{{tabular}}{{{'l' * table.shape[1]}}}", r"\toprule", line(table.columns), r"\midrule"]
    body = [line(row) for row in table.values.tolist()]
    return "\n".join([*head, *body, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def save(name: str, table: pd.DataFrame, caption: str, layout: pd.DataFrame | None = None) -> None:
    """The table as it is in reports/tables/name.csv, in its layout as Markdown and LaTeX."""
    layout, path = table if layout is None else layout, Path("reports/tables") / name
    files.write_csv(path.with_suffix(".csv"), table)
    files.write_text(path.with_suffix(".md"), markdown(layout, caption))
    files.write_text(path.with_suffix(".tex"), latex(layout, caption, f"tab:{name}"))
