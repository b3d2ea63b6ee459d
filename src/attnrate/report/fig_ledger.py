"""One picture of the whole ledger: a row for each claim, its numbers first, then every part against its margin.

Effects have many units, so a part is drawn at the distance of its effect δ from its margin Δ, in half-widths h of its
interval, and positive where the claim holds:

    x = (δ - Δ) / h (above),  (Δ - δ) / h (below),  (Δ - |δ|) / h (equal)

Its interval is x ± 1: it is clear of the margin where it does not touch x = 0.
"""

import re
import textwrap
from math import inf, isfinite, isnan

from matplotlib.transforms import blended_transform_factory

from attnrate.report.claims.ledger import NOT, PARTLY, REPRODUCED, UNDECIDED, gate, headline
from attnrate.report.claims.statistics import HOLDS, OPEN
from attnrate.report.style.figure import plt
from attnrate.report.verdicts import SIGNS, drawn, effect, ends, margin, stuck

COLOURS = {REPRODUCED: "#0072B2", PARTLY: "#B07A00", NOT: "#C22F00", UNDECIDED: "#767676"}
MARKERS = {REPRODUCED: "o", PARTLY: "D", NOT: "X", UNDECIDED: "o"}
GROUPS = {  # the first claim of each
    "equivariance": "Section 4: the hypothesis space and Theorem 4.1",
    "finite-rank": "Section 5.1, Figure 1: error against head size",
    "learned-spectrum": "Section 5.2, Figures 2 and 3: spectra, and attention on images",
    "prop-6.1": "Section 6.1, Tables 1 and 2: temporal order",
    "theta-rho": "Section 6.2, Table 2: temporal mixing",
    "rnn-better": "Section 6: which architecture is better",
    "ff-recovered": "Appendix B, Figures 4 to 6: what attention learns",
    "table3-rnn": "Appendices C and D, Table 3",
    "depth-floor": "Beyond the paper: predictions of our own",
}
DPI = 115  # a long picture: 1,300 pixels wide can be read, and keep file and page small
WIDTH, LINE, SIZE, SMALL = 11.0, 0.138, 7.4, 6.6  # inches, inches of a line, points
CLAIM, OURS, PAPER, EFFECT, PLOT, VERDICT, END = 0.0, 0.122, 0.322, 0.422, 0.627, 0.905, 1.0  # columns
LETTERS = {"ours": 36, "paper": 18, "below": 83}  # that fit in a line
ABOVE, BELOW, GROUP, GAP, PART = 8.6, 3.4, 1.9, 0.55, 0.9  # lines: heading, axis, title of a group, space, a part
FAR = 30.0  # half-widths; what is farther has an arrow
BEHIND = {"fc": "white", "ec": "none", "pad": 0.5}  # of text that crosses the margin
SHORT = {"above": ">", "below": "<", "equal": "±"}
CAPTION = f"""A point is the effect of a part of a claim, at its distance from its margin in half-widths of its
interval: right of the line the part holds, left of it it fails, and an interval that reaches the line decides nothing.
The scale is logarithmic beyond 1; arrows are beyond {FAR:g}. Intervals of 95 %, of 90 % for ±, and wider where one of
several parts fails. Hollow: open, also where an interval is clear, but not at the level that several parts ask for, or
where training is not converged."""


def inside(part: dict) -> tuple[float, float, float]:
    """Lower end, effect and upper end by how far they are on the side of the margin where the claim holds."""
    (low, middle, high), edge = ends(part), part["margin"]
    if part["test"] == "equal":
        inner = 0.0 if low < 0 < high else min(abs(low), abs(high))
        return edge - max(abs(low), abs(high)), edge - abs(middle), edge - inner
    if part["test"] == "above":
        return low - edge, middle - edge, high - edge
    return edge - high, edge - middle, edge - low


def distances(part: dict) -> tuple[float, float, float] | None:
    """The same in half-widths; None without an interval."""
    low, middle, high = ends(part)
    half = (high - low) / 2
    if not isfinite(half):  # a run died: the arm that is left
        half = next((arm for arm in (middle - low, high - middle) if isfinite(arm)), inf)
    if part["replicates"] < 2 or isnan(middle) or (half == inf and part["outcome"] == OPEN):
        return None
    far = half in (0, inf)  # no spread, or nothing but infinities
    return tuple(v * inf if far and v else v if far else v / half for v in inside(part))


def wrap(text: str, letters: int, lines: int) -> list[str]:
    text = re.sub(" ([=≥≤]) ", "\u00a0\\1\u00a0", text)  # do not break m_h = 1
    return textwrap.wrap(text, letters, max_lines=lines, placeholder=" …", break_on_hyphens=False)


def compact(text: str) -> str:
    """1.6e+03 as 1.6e3 and 0.00016 as 1.6e-4, for columns that are narrow."""
    text = re.sub(r"\b0\.000([1-9])(\d+)\b", r"\1.\2e-4", text)
    return re.sub(r"(?<=\de)\+?(-?)0*(?=\d)", r"\1", text)


def died(row: dict) -> str:
    """Parts that have lost runs, but for those whose need says so."""
    parts = (p for p in drawn(row) if p["dead"] and f"({p['dead']} of {p['replicates']} did)" not in row["needs"])
    return "; ".join(f"{p['name']}: {stuck(p)}".removeprefix(": ") for p in parts)


def columns(row: dict) -> dict[str, list[str]]:
    """The lines of each column of text."""
    ours = re.sub(r" \[with .*?\]", "", row["measured"])  # what stands beside the judged numbers
    needs = compact(re.sub(r", by the spread of these \d+", "", row["needs"]))
    return {
        "ours": wrap(compact(ours), LETTERS["ours"], 3),
        "paper": wrap(compact(row["paper"]), LETTERS["paper"], 4),
        "below": wrap(died(row), LETTERS["below"], 2) + wrap(needs and f"needs {needs}", LETTERS["below"], 2),
    }


def height(row: dict) -> float:
    text = columns(row)
    right = len(drawn(row)) * PART + len(row["parts"]) - len(drawn(row)) + len(text["below"])
    return max(2, len(text["ours"]), len(text["paper"]), right) + GAP


def draw_part(ax: plt.Axes, write, row: dict, part: dict, y: float) -> None:
    """Numbers, then a point with its interval; the name stands on the other side of the margin."""
    colour, found = COLOURS[row["verdict"]], distances(part)
    write(EFFECT, y, compact(effect(part, row["unit"])), color=colour)
    bound = compact(margin(part, row["unit"])).split()[-1].lstrip("±")
    write(PLOT - 0.006, y, f"{SHORT[part['test']]} {bound}", color="0.35", ha="right")
    if found is None:  # on neither side
        return label(ax, 0, y, f"{part['name']} (no interval)".lstrip(), ha="center", bbox=BEHIND)
    low, x, high = (max(-FAR, min(FAR, v)) for v in found)
    shape = MARKERS[row["verdict"]] if abs(found[1]) <= FAR else ">" if x > 0 else "<"
    face = "white" if part["outcome"] == OPEN else colour
    ax.plot([low, high], [y + 0.5] * 2, "-", color=colour, lw=1.5, solid_capstyle="butt", gid=f"{row['id']} interval")
    for end, beyond in ((low, "<"), (high, ">")):
        if abs(end) == FAR > abs(x):
            ax.plot([end], [y + 0.5], beyond, color=colour, ms=3)
    ax.plot([x], [y + 0.5], shape, color=colour, mfc=face, ms=4.2, gid=f"{row['id']} effect")
    label(ax, min(low, 0) - 0.3 if x > 0 else max(high, 0) + 0.3, y, part["name"])


def label(ax: plt.Axes, x: float, y: float, text: str, **style) -> None:
    """Text that leads away from the margin."""
    given = {"size": SMALL, "color": "0.35", "va": "center", "ha": "left" if x > 0 else "right", "parse_math": False}
    ax.text(x, y + 0.5, text, **given | style)


def draw_exact(ax: plt.Axes, row: dict, part: dict, y: float) -> None:
    """✓ on the side where claims hold, ✗ on the other."""
    name = part["name"] or ("exact" if row["exact"] else "as its criterion says")
    x, text = (0.3, f"✓ {name}") if part["outcome"] == HOLDS else (-0.3, f"{name} ✗")
    label(ax, x, y, text, size=SIZE, color=COLOURS[row["verdict"]], gid=f"{row['id']} exact")


def draw_row(ax: plt.Axes, write, row: dict, y: float, profile: str) -> None:
    text, verdict = columns(row), row["verdict"]
    write(CLAIM, y, row["id"], weight="bold", gid=f"{row['id']} claim")
    write(CLAIM, y + 1, *wrap(row["ref"], 24, 1), color="0.45", size=SMALL)
    for column, x, colour in (("ours", OURS, "0.1"), ("paper", PAPER, "0.35")):
        for i, line in enumerate(text[column]):
            write(x, y + i, line, color=colour)
    write(VERDICT, y, f"{SIGNS[verdict]} {verdict}", color=COLOURS[verdict], weight="bold")
    how = "exact" if row["exact"] and row["parts"] else gate(row)
    write(VERDICT, y + 1, ", ".join(filter(None, [how, profile])), color="0.45", size=SMALL)
    for part in drawn(row):
        draw_part(ax, write, row, part, y)
        y += PART
    for part in (p for p in row["parts"] if "test" not in p):
        draw_exact(ax, row, part, y)
        y += 1
    for i, line in enumerate(text["below"]):
        write(EFFECT, y + i, line, color="0.35", style="italic", bbox=BEHIND)


def scale(ax: plt.Axes) -> None:
    ax.set_xscale("asinh", linear_width=1)
    ax.set_xlim(-FAR * 1.12, FAR * 1.12)
    ticks = (-10, -3, -1, 0, 1, 3, 10)
    ax.set_xticks(ticks, ["margin" if t == 0 else f"{t}" for t in ticks], size=SIZE)
    ax.minorticks_off()
    ax.set_yticks([])
    ax.grid(False)
    ax.spines["left"].set_visible(False)
    ax.axvspan(-1, 1, color="0.94", lw=0)  # an interval around a point in here reaches the margin
    ax.axvline(0, color="0.2", lw=0.9)
    ax.set_xlabel("distance of the effect from its margin,\nin half-widths of its interval", size=SIZE)


def heading(figure: plt.Figure, ax: plt.Axes, write, title: str) -> None:
    write(CLAIM, -ABOVE + 0.4, title, size=SIZE + 2.6, weight="bold", linespacing=1.3)
    caption = "\n".join(textwrap.wrap(CAPTION, 170))
    write(CLAIM, -ABOVE + 4.1, caption, size=SIZE, color="0.3", linespacing=1.35)
    marks = [plt.Line2D([], [], ls="", marker=MARKERS[v], color=COLOURS[v], label=v) for v in (REPRODUCED, PARTLY, NOT)]
    marks.append(plt.Line2D([], [], ls="", marker="o", color=COLOURS[UNDECIDED], mfc="white", label="undecided part"))
    where = {"loc": "upper right", "bbox_to_anchor": (END, 1), "bbox_transform": figure.transFigure}
    ax.legend(handles=marks, ncols=2, fontsize=SIZE, borderaxespad=0, **where)
    names = ("claim", "here", "in the paper", "effect [interval]", "verdict")
    for x, text in zip((CLAIM, OURS, PAPER, EFFECT, VERDICT), names, strict=True):
        write(x, -1.4, text, weight="bold", color="0.35")
    write(PLOT - 0.006, -1.4, "margin", weight="bold", color="0.35", ha="right")
    label(ax, -0.3, -1.4, "◂ fails", size=SIZE, weight="bold")
    label(ax, 0.3, -1.4, "holds ▸", size=SIZE, weight="bold")


def ledger(rows: list[dict]) -> plt.Figure:
    """All claims, in the paper's order; where they come from several profiles, each row names its own."""
    profiles = list(dict.fromkeys(row["profile"] for row in rows))
    tops, y = [], 0.0
    for row in rows:
        tops.append(y + GROUP * (row["id"] in GROUPS))
        y = tops[-1] + height(row)
    total = y + ABOVE + BELOW
    figure = plt.figure(figsize=(WIDTH, total * LINE), dpi=DPI)
    figure.set_layout_engine("none")  # columns have their places
    ax = figure.add_axes((PLOT, BELOW / total, VERDICT - 0.012 - PLOT, y / total), ylim=(y, 0))
    scale(ax)
    across = blended_transform_factory(figure.transFigure, ax.transData)

    def write(x: float, y: float, text: str, **style) -> None:
        given = {"size": SIZE, "va": "center", "transform": across, "parse_math": False}
        ax.text(x, y + 0.5, text, **given | style)

    heading(figure, ax, write, f"{headline(rows)[:-1]} ({' and '.join(profiles)} profile)".replace("; ", "\n"))
    for row, top in zip(rows, tops, strict=True):
        if row["id"] in GROUPS:
            write(CLAIM, top - 1.3, GROUPS[row["id"]], size=SIZE + 0.6, weight="bold")
        ax.plot([CLAIM, END], [top - 0.2] * 2, color="0.87", lw=0.6, transform=across, clip_on=False, zorder=0)
        draw_row(ax, write, row, top, row["profile"] if len(profiles) > 1 else "")
    return figure
