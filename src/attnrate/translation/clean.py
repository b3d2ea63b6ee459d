"""What public recipes for WMT14 do to a corpus before they train: plain punctuation, pairs of like length."""

from collections.abc import Callable

import numpy as np


def normaliser(language: str) -> Callable[[str], str]:
    """Moses' normalize-punctuation.perl in sacremoses: quotation marks, dashes, spaces before signs and in numbers."""
    from sacremoses import MosesPunctNormalizer  # the laptop's corpus stays as it is

    return MosesPunctNormalizer(language).normalize


def alike(one: np.ndarray, other: np.ndarray, ratio: float | None) -> np.ndarray:
    """Pairs neither side of which has more than `ratio` times the tokens of the other: Moses' clean-corpus-n.perl."""
    if ratio is None:
        return np.ones(len(one), bool)
    return (one <= ratio * other) & (other <= ratio * one)
