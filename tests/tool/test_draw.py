"""Figures of heads that have nothing to show."""

import pytest
import torch

from attnrate.report.style.figure import plt
from attnrate.spectra.measure import measure_all
from attnrate.tool import draw
from attnrate.tool.decay import fits
from attnrate.vit import model as vit


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rows", [8, 16], ids=["a dead head", "dead heads"])
@torch.no_grad()
def test_dead_heads_are_drawn(rows):
    """A head without queries has only zeros, of which there is no logarithm and no rank."""
    model = vit.build("qk", 8, image_size=16, patch=4, width=16, depth=2, heads=2, mlp_ratio=2.0)
    for block in model.blocks:
        block.attn.qkv.weight[:rows] = 0
        block.attn.qkv.bias[:rows] = 0
    found = measure_all(model, [torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(0))])
    ranks = found["scores"].ranks
    assert not ranks.isna().any().any() and (ranks.effective == 0).sum() == 2 * rows // 8
    figures = [
        draw.violins(found["scores"], "none", ""),
        draw.spectra(found["scores"], "none", ""),
        draw.heatmap(found, {name: fits(each) for name, each in found.items()}, ""),
        draw.against(found["scores"], found["scores"], ("one", "two"), "none", ""),
    ]
    for figure in figures:
        figure.canvas.draw()
        plt.close(figure)
