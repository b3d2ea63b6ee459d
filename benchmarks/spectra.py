"""Singular values of attention matrices: m_h-sized factors against torch.linalg.svdvals on the scores at τ = 197."""

from collections.abc import Iterator

import torch

from attnrate.spectra.measure import measure
from attnrate.spectra.values import singular_values
from attnrate.vit import model as vit
from benchmarks.common import Row, alternate, as_stage, ratio
from benchmarks.memory import peak

GOALS = {1: 20, 4: 20, 16: 20, 32: 6, 64: 6}
TOKENS = 197


def run(quick: bool) -> Iterator[Row]:
    matrices, repeats = (2, 1) if quick else (96, 7)
    g = torch.Generator().manual_seed(0)
    for mh, goal in GOALS.items():
        q, k = torch.randn(2, matrices, TOKENS, mh, generator=g)
        with as_stage():
            times = alternate(
                {
                    "theirs": lambda q=q, k=k: torch.linalg.svdvals(q @ k.mT),
                    "ours": lambda q=q, k=k: singular_values(q, k),
                },
                repeats,
            )
        exact = torch.linalg.svdvals(q.double() @ k.double().mT)
        error = ((singular_values(q, k) - exact[:, :mh]).abs().amax(-1) / exact[:, 0]).max().item()
        name = f"spectra of {matrices} matrices, m_h = {mh}"
        yield ratio(name, "`torch.linalg.svdvals(q @ k.mT)`", times["ours"], times["theirs"], goal)
        yield Row(f"{name}: error", "double precision, over the largest value", 1e6 * error, 10, "≤", "e-6")
    yield from memory(quick)


def memory(quick: bool) -> Iterator[Row]:
    """Peak memory of the stage's own loop on 8 times the images."""
    few = 16 if quick else 512
    model = vit.build("qk", 16, image_size=32, patch=4, width=64, depth=4, heads=2, mlp_ratio=2.0)
    images = torch.zeros(8 * few, 3, 32, 32)
    torch.manual_seed(0)
    images.normal_()
    with as_stage():
        sizes, tries = (few, 8 * few), 1 if quick else 5  # the least of them: the allocator's mood adds megabytes
        calls = [lambda n=n: measure(model, images[:n].split(min(64, few)), "tokens") for n in sizes]
        grown = [min(peak(call) for _ in range(tries)) for call in calls]
    note = f"{grown[0] / 2**20:.0f} MB and {grown[1] / 2**20:.0f} MB"
    yield Row(
        f"spectra: peak memory, {8 * few} images over {few}", "", grown[1] / max(grown[0], 1), 1.1, "≤", "x", note=note
    )
