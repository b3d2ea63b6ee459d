"""The translation column of Table 1."""

from dataclasses import dataclass

import pandas as pd

PAPER = {"original": 26.85, "permuted": 25.91}  # BLEU on WMT14; the other rows are not in the paper
NAMES = {"wmt14": "WMT14", "interface": "Home Assistant strings, not WMT14", "files": "own files, not the whole WMT14",
         "toy": "toy sentences, not WMT14"}  # fmt: skip
METRIC = "BLEU"


@dataclass(frozen=True)
class Cell:
    value: float  # mean BLEU over seeds
    n: int  # seeds
    spread: str  # range over seeds, or "" with one seed
    paper: float | None  # the paper's number, on WMT14
    pairs: int  # test pairs
    signature: str  # sacreBLEU's

    @property
    def text(self) -> str:
        return f"{self.value:.2f}" + (f" [{self.spread}]" if self.spread else "") + f" (n = {self.n})"


def corpus_name(table: pd.DataFrame) -> str:
    """What the column's head has to say about the data."""
    return NAMES[table.corpus.iloc[0]]


def column(table: pd.DataFrame) -> dict[str, Cell]:
    """variant → cell, in the order of translation.csv: copy, original, unadapted, permuted, …"""
    cells = {}
    for variant, part in table.groupby("variant", sort=False):
        low, high = part.bleu.min(), part.bleu.max()
        spread = f"{low:.2f}–{high:.2f}" if len(part) > 1 else ""
        cells[variant] = Cell(
            part.bleu.mean(), len(part), spread, PAPER.get(variant), int(part.pairs.iloc[0]), part.signature.iloc[0]
        )
    return cells
