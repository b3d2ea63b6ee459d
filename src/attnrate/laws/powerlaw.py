"""Power laws: slopes on doubly logarithmic axes with confidence intervals."""

from collections.abc import Sequence

import numpy as np
from scipy import stats


def loglog_slope(x: Sequence[float], y: Sequence[float], confidence: float = 0.95) -> dict[str, float]:
    """Least-squares slope of log y against log x, with Student's t interval."""
    fit = stats.linregress(np.log(x), np.log(y))
    error = fit.stderr if np.ptp(y) > 0 else 0.0  # of a constant linregress gives nan
    half = stats.t.ppf(0.5 + confidence / 2, len(x) - 2) * error
    return {"slope": fit.slope, "low": fit.slope - half, "high": fit.slope + half, "n": len(x)}
