"""What is done to a corpus before training, on lines made for it."""

import numpy as np
import pytest

from attnrate.translation import clean


@pytest.mark.parametrize(
    ("language", "before", "after"),
    [
        ("de", "„Gut“ – sagt’s … ( ja )", '"Gut" - sagt\'s ... (ja)'),
        ("de", "10\u00a0000 Euro : «viel»", '10,000 Euro: "viel"'),
        ("en", "“Fine”, it’s 10\u00a0000 !", '"Fine," it\'s 10.000 !'),
        ("en", "plain text stays.", "plain text stays."),
    ],
)
def test_punctuation_is_that_of_moses(language, before, after):
    assert clean.normaliser(language)(before) == after


def test_pairs_of_unlike_length_are_left_out():
    en, de = np.array([2, 2, 3, 3, 10, 1]), np.array([3, 4, 2, 1, 10, 0])
    assert clean.alike(en, de, 1.5).tolist() == [True, False, True, False, True, False]
    assert clean.alike(en, de, None).all()
