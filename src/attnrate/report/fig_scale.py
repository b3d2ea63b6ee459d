"""Effects and intervals against scale: a row for each claim that two profiles or more have measured.

As in the picture of the ledger an effect stands at its distance from its margin, positive where the claim holds, but
in half-widths of the smallest profile's interval: a larger profile shows as a shorter interval.
What is farther than the scale has an arrow.
"""

from math import inf, isfinite

from attnrate.report.fig_ledger import FAR, SIZE, inside, label, scale
from attnrate.report.published import SIZES, Column
from attnrate.report.style.figure import plt
from attnrate.report.verdicts import deciding, drawn, ends

WIDTH, LINE, LEFT = 7.5, 0.3, 0.24  # inches, inches of a claim, share of the width for names
COLOURS = dict(zip(SIZES, ("0.55", "C0", "C1"), strict=True))
MARKERS = dict(zip(SIZES, "osD", strict=True))
TITLE = "Claims that several profiles judge, by profile"
NOTHING = "No claim has an effect in two profiles yet."


def parts(name: str, found: list[Column]) -> dict[str, dict]:
    """By profile, the part of a claim that decides it in the largest."""
    rows = {c.profile: c.rows[name] for c in found if name in c.rows and c.profile in SIZES}
    last = deciding(list(rows.values())[-1]) if rows else None
    same = {p: [part for part in drawn(row) if part["name"] == last["name"]] for p, row in rows.items()} if last else {}
    return {profile: own[0] for profile, own in same.items() if own}


def half(part: dict) -> float:
    low, _, high = ends(part)
    return (high - low) / 2 if part["replicates"] > 1 and high > low else inf


def both(found: list[Column]) -> dict[str, dict[str, tuple[dict, float]]]:
    """Claim → profile → its part and the unit of the row; claims of two profiles or more whose intervals are finite."""
    drawable = {}
    for name in max((c.rows for c in found), key=len):
        own = parts(name, found)
        unit = next((h for h in map(half, own.values()) if isfinite(h)), None)
        if unit and len(own) > 1:
            drawable[name] = {profile: (part, unit) for profile, part in own.items()}
    return drawable


def scales(found: list[Column]) -> plt.Figure:
    """One line of a claim for each profile, the smallest on top."""
    rows = both(found)
    figure = plt.figure(figsize=(WIDTH, 1.3 + LINE * max(len(rows), 2)))
    figure.set_layout_engine("none")
    ax = figure.add_axes((LEFT, 0.75 / figure.get_figheight(), 0.97 - LEFT, 1 - 1.25 / figure.get_figheight()))
    ax.set_ylim(max(len(rows), 1), 0)
    scale(ax)
    ax.set_xlabel(
        "distance of the effect from its margin,\nin half-widths of the smallest profile's interval", size=SIZE
    )
    label(ax, -0.3, -0.8, "◂ fails", size=SIZE, weight="bold")
    label(ax, 0.3, -0.8, "holds ▸", size=SIZE, weight="bold")
    profiles = [p for p in SIZES if any(p in own for own in rows.values())]
    for y, (name, own) in enumerate(rows.items()):
        ax.text(-0.02, y + 0.5, name, size=SIZE, va="center", ha="right", transform=ax.get_yaxis_transform())
        for profile, (part, unit) in own.items():
            low, x, high = (max(-FAR, min(FAR, v / unit)) for v in inside(part))
            at = y + (profiles.index(profile) + 1) / (len(profiles) + 1)
            style = {"color": COLOURS[profile], "gid": f"{name} {profile}"}
            ax.plot([low, high], [at] * 2, "-", lw=1.5, solid_capstyle="butt", **style)
            ax.plot([x], [at], MARKERS[profile] if abs(x) < FAR else ">" if x > 0 else "<", ms=3.8, **style)
    figure.text(0.01, 0.995, TITLE, size=SIZE, va="top", weight="bold")
    if rows:
        marks = [plt.Line2D([], [], color=COLOURS[p], marker=MARKERS[p], ms=3.8, label=p) for p in profiles]
        figure.legend(handles=marks, loc="upper right", ncols=len(marks), fontsize=SIZE)
    else:
        ax.text(0.5, 0.5, NOTHING, size=SIZE, ha="center", va="center", transform=ax.transAxes)
    return figure
