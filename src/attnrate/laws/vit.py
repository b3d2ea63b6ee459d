"""What is fitted in section 5.2: training error against m_h (Figure 3b), singular values against k (Figure 3a)."""

import pandas as pd

from attnrate.laws.fit import AUTHORS_ERROR, AUTHORS_MH, compare

FEWEST = 5  # points that three parameters are fitted to; with fewer the fit says nothing


SWEEP, BESIDE = "original", "beside"  # variants: Figure 3's sweep, and some of its heads by another recipe


def errors(vit: pd.DataFrame, reading: str, variant: str = SWEEP) -> pd.Series:
    """Training error of the sweep, mean over seeds, by m_h: of the authors' recipe the running loss, as theirs."""
    rows = vit[(vit.reading == reading) & (vit.variant == variant)]
    return rows.groupby("mh").error.mean()


def last_layer(spectra: pd.DataFrame, reading: str) -> pd.DataFrame:
    """Mean singular values of the first head of the last layer, first seed: index k, a column for each m_h."""
    return first_head(spectra, reading).pivot(index="k", columns="mh", values="mean")


def first_head(spectra: pd.DataFrame, reading: str) -> pd.DataFrame:
    """The rows of Figure 3(a): of the last layer and the first seed, keys centred, as the softmax sees them."""
    rows = spectra[(spectra.reading == reading) & spectra.centred & (spectra.seed == spectra.seed.min())]
    return rows[(rows["head"] == 1) & (rows.layer == rows.layer.max())]


def spread(values: pd.DataFrame, floor: float, by: list[str]) -> pd.Series:
    """Median over k of sd / mean over images, of the values above `floor` times the largest: of each head."""
    large = values[values["mean"] > floor * values.groupby(by)["mean"].transform("max")]
    return (large.sd / large["mean"]).groupby([large[key] for key in by]).median().rename("spread")


def _laws(x, y, **options) -> dict:
    laws = {name: fit.to_dict() for name, fit in compare(x, y, **options).items()} if len(x) >= FEWEST else {}
    return {"n": len(x), "laws": laws}


def fits(vit: pd.DataFrame, spectra: pd.DataFrame) -> dict:
    result = {"authors": _laws(AUTHORS_MH, AUTHORS_ERROR), "error": {}, "spectrum": {}}
    for reading in vit.reading.unique():
        y = errors(vit, reading)
        result["error"][reading] = _laws(y.index, y)
        widest = last_layer(spectra, reading).iloc[:, -1].dropna()
        widest = widest[widest > 1e-6 * widest.max()]  # beyond it is rounding
        result["spectrum"][reading] = _laws(widest.index, widest, relative=True)
    return result
