"""Singular values of attention matrices from m_h-sized factors, against torch.linalg.svdvals; errors of cut heads."""

import subprocess
import sys
from collections.abc import Iterator

import torch

from attnrate.cut.factors import factors, left_out, second_moments
from attnrate.spectra.attention import Catch
from attnrate.spectra.measure import SPECTRA, measure_all
from attnrate.spectra.values import singular_values
from attnrate.vit import model as vit
from benchmarks.common import Row, alternate, as_stage, ratio

GOALS = {1: 20, 4: 20, 16: 20, 32: 6, 64: 6}
LONG = {16: 5, 64: 5}


def run(quick: bool) -> Iterator[Row]:
    yield from speed(197, GOALS, *((2, 1) if quick else (96, 7)))
    yield from speed(64 if quick else 1024, LONG, *((2, 1) if quick else (6, 5)))
    yield from cuts(quick)
    yield from whole(quick)
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


def whole(quick: bool) -> Iterator[Row]:
    """All that `attnrate spectrum` measures of a model, forward pass included, against dense values of its scores."""
    few = 2 if quick else 8
    model = vit.build("qk", 64, image_size=224, patch=16, width=384, depth=2, heads=6, mlp_ratio=2.0)
    images = torch.randn(few, 3, 224, 224, generator=torch.Generator().manual_seed(0))

    def dense() -> None:
        catch = Catch(lambda call: torch.linalg.svdvals(call.q @ call.k.mT))
        with torch.no_grad(), catch.watching(model):
            catch.run(model, images)

    for which in (["scores"], list(SPECTRA)):
        with as_stage():
            calls = {"theirs": dense, "ours": lambda which=which: measure_all(model, [images], which=which)}
            times = alternate(calls, 1 if quick else 5)
        name = f"`measure_all`, {' and '.join(which)}, with the forward pass"
        yield ratio(name, "svdvals of scores of the same pass", times["ours"], times["theirs"], None)


PROBE = """
import resource, sys, torch
from attnrate.cut.advice import advise
from attnrate.spectra.measure import measure_all
from attnrate.vit import model as vit
what, number = sys.argv[1], int(sys.argv[2])
model = vit.build("qk", 16, image_size=32, patch=4, width=64, depth=4, heads=2, mlp_ratio=2.0)
def batches():
    generator = torch.Generator().manual_seed(0)
    for _ in range(number // 4):
        yield torch.randn(4, 3, 32, 32, generator=generator)
measure_all(model, batches()) if what == "spectra" else advise(model, batches, sizes=[4])
print(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def memory(quick: bool) -> Iterator[Row]:
    """Peak memory of a process that measures more inputs, made as they are needed: as the tool reads them."""
    few, many = (4, 8) if quick else (32, 512)
    for what in ("spectra", "heads"):
        peaks = []
        for number in (few, many):
            command = [sys.executable, "-c", PROBE, what, str(number)]
            peaks.append(int(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        note = f"{peaks[0] / 2**20:.0f} MB and {peaks[1] / 2**20:.0f} MB, the whole process"
        name = f"{what}: peak memory, {many} inputs over {few}"
        yield Row(name, "", peaks[1] / peaks[0], 1.1, "≤", "x", note=note)
