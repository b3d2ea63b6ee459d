"""Retrained against cut, as a figure."""

import pandas as pd
import pytest

from attnrate.report import fig_cut


def test_cut_and_retrained_models_are_compared_with_their_own_full_heads():
    """What the few images of a cut model have of their own, an accuracy of 0.7 against 0.5, is no effect of heads."""
    drop = {1: 0.2, 4: 0.1, 32: 0.0}
    rows = [
        {"model": name, "seed": seed, "method": method, "mh": mh, "n": 64, "loss": 2 + seed + lost, "change": lost}
        | {"change_low": lost - 0.05, "change_high": lost + 0.05, "accuracy": 0.7 - lost}
        for name, seeds in (("main", 3), ("translation", 1), ("pretrained", 1))
        for seed in range(seeds)
        for method in ("scores", "data")
        for mh, lost in drop.items()
    ]
    curves = pd.DataFrame(rows)
    words = curves.model == "translation"
    curves.loc[words, "accuracy"] = float("nan")
    curves.loc[words, ["change", "change_low", "change_high"]] /= 2  # of its loss of 2 with full heads
    sweep = {"reading": "qk", "mh": [1, 4, 32, 32], "seed": [0, 0, 0, 1], "test_acc": [0.3, 0.4, 0.5, 0.6]}
    sweep["test_loss"] = [2, 1.5, 1.2, 1.0]
    vit = pd.concat([pd.DataFrame(sweep).assign(variant=v) for v in ("original", "beside")])
    drawn = fig_cut.figure(curves, vit, ("one", "two"), "toy", "all 10,000 test images", "test")
    accuracy, loss, translation, *pretrained = drawn.axes
    for ax, change in ((accuracy, [-0.2, -0.1, 0]), (loss, [0.2, 0.1, 0]), (translation, [0.2, 0.1, 0])):
        line = next(line for line in ax.get_lines() if line.get_label() == "cut, by weights and data")
        assert line.get_ydata() == pytest.approx(change)
    first = {line.get_label(): line for line in accuracy.get_lines()}
    trained = first["trained at $m_h$ by one, each seed"].get_ydata()
    assert trained == pytest.approx([-0.25, -0.15, -0.05, 0.05])
    bands = [ax.collections[0].get_paths()[0].vertices[:, 1] for ax in (accuracy, translation)]
    assert [(min(v), max(v)) for v in bands] == [pytest.approx((-0.25, 0.05)), pytest.approx((-0.05, 0.25))]
    assert [len(ax.get_lines()) for ax in drawn.axes] == [7, 7, 3, 3, 3, 0] and pretrained[0].get_title()[:3] == "(d)"
    said = drawn.axes[-1].get_legend().get_title().get_text()
    assert "same 64 inputs" in said and "all 10,000 test images" in said
    fig_cut.plt.close(drawn)
