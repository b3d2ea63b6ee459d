"""Retrained against cut, as a figure."""

import pandas as pd

from attnrate.report import fig_cut


def test_every_model_has_its_panel_and_the_sweep_stands_beside_the_main_one():
    rows = [
        {"model": name, "seed": seed, "method": method, "mh": mh, "n": 64, "accuracy": 0.5, "loss": 1 / mh}
        for name, seeds in (("main", 3), ("translation", 1), ("pretrained", 1))
        for seed in range(seeds)
        for method in ("scores", "data")
        for mh in (1, 4, 32)
    ]
    curves = pd.DataFrame(rows).assign(loss_low=0.0, loss_high=2.0)
    sweep = {"reading": "qk", "mh": [1, 4, 32], "seed": 0, "test_acc": [0.3, 0.4, 0.5], "test_loss": [2, 1.5, 1.2]}
    vit = pd.concat([pd.DataFrame(sweep).assign(variant=v) for v in ("original", "beside")])
    drawn = fig_cut.figure(curves, vit, ("one", "two"), "toy", "test")
    first = {line.get_label(): line for line in drawn.axes[0].get_lines()}
    assert list(first["trained at $m_h$, one, each seed"].get_ydata()) == [0.3, 0.4, 0.5]
    assert list(drawn.axes[2].get_lines()[0].get_ydata()) == [1, 1 / 4, 1 / 32]
    assert [len(ax.get_lines()) for ax in drawn.axes] == [6, 6, 2, 2]
    fig_cut.plt.close(drawn)
