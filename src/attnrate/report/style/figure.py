"""Every figure in the same style, as SVG and PNG, without dates or versions in the files."""

from collections.abc import Iterable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from attnrate.core import files

plt.style.use(Path(__file__).with_name("attnrate.mplstyle"))


def save(name: str, figure: plt.Figure, folder: Path = Path("reports/figures")) -> None:
    for kind, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
        with files.atomic(folder / f"{name}.{kind}") as draft:
            figure.savefig(draft, format=kind, metadata=metadata)
    plt.close(figure)


def shared_legend(figure: plt.Figure, axes: Iterable[plt.Axes], columns: int) -> None:
    """One legend below all panels, with each label once."""
    handles = {label: h for ax in axes for h, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns)


def head_size_axis(ax: plt.Axes, mh) -> None:
    """Logarithmic m_h axis with plain numbers."""
    ax.set_xscale("log")
    ticks = [m for m in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128) if min(mh) <= m <= max(mh)]
    ax.set_xticks(ticks, [str(t) for t in ticks])
    ax.xaxis.minorticks_off()
    ax.set_xlabel("head size $m_h$")
