"""Singular values of attention matrices from m_h-sized factors, against torch.linalg.svdvals; errors of cut heads."""

from collections.abc import Iterator

import torch

from attnrate.cut.advice import advise
from attnrate.cut.factors import factors, left_out, second_moments
from attnrate.spectra.measure import measure
from attnrate.spectra.values import singular_values
from attnrate.vit import model as vit
from benchmarks.common import Row, alternate, as_stage, ratio
from benchmarks.memory import peak

GOALS = {1: 20, 4: 20, 16: 20, 32: 6, 64: 6}
LONG = {16: 5, 64: 5}


def run(quick: bool) -> Iterator[Row]:
    yield from speed(197, GOALS, *((2, 1) if quick else (96, 7)))
    yield from speed(64 if quick else 1024, LONG, *((2, 1) if quick else (6, 5)))
    yield from cuts(quick)
    yield from memory(quick)


def speed(tokens: int, goals: dict[int, int], matrices: int, repeats: int) -> Iterator[Row]:
    g = torch.Generator().manual_seed(0)
    for mh, goal in goals.items():
        q, k = torch.randn(2, matrices, tokens, mh, generator=g)
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
        name = f"spectra of {matrices} matrices, m_h = {mh}{'' if tokens == 197 else f', {tokens} tokens'}"
        yield ratio(name, "`torch.linalg.svdvals(q @ k.mT)`", times["ours"], times["theirs"], goal)
        yield Row(f"{name}: error", "double precision, over the largest value", 1e6 * error, 10, "≤", "e-6")


def cuts(quick: bool) -> Iterator[Row]:
    """The errors of scores for every m_h, from one factorisation, over one spectrum of the same scores."""
    matrices, repeats = (2, 1) if quick else (96, 7)
    q, k = torch.randn(2, matrices, 197, 64, generator=torch.Generator().manual_seed(0))
    common = factors(second_moments(q).sum(0), second_moments(k).sum(0))
    with as_stage():
        times = alternate(
            {
                "spectrum": lambda: singular_values(q, k),
                "errors": lambda: left_out(common, second_moments(q), second_moments(k)),
            },
            repeats,
        )
    note = f"{1e3 * times['errors']:.0f} ms and {1e3 * times['spectrum']:.0f} ms"
    name = f"score errors of {matrices} matrices at all 64 m_h over one spectrum"
    yield Row(name, "", times["errors"] / times["spectrum"], 3, "≤", "x", note=note)


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
    few, many = (4, 8) if quick else (32, 512)

    def cut(n: int) -> object:
        return advise(model, lambda: images[:n].split(4), sizes=[4])

    with as_stage():
        calls = [lambda n=n: cut(n) for n in (few, many)]
        grown = [min(peak(call) for _ in range(tries)) for call in calls]
    note = f"{grown[0] / 2**20:.0f} MB and {grown[1] / 2**20:.0f} MB"
    yield Row(
        f"heads: peak memory, {many} images over {few}", "", grown[1] / max(grown[0], 1), 1.2, "≤", "x", note=note
    )
