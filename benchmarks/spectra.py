"""Singular values of attention matrices: m_h-sized factors against torch.linalg.svdvals at τ = 197 (10 s).

python benchmarks/spectra.py          # needs ≥ 20x at m_h ≤ 16 and ≥ 6x at 64, to 1e-5 of the largest value
"""

import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in every stage
import torch

from attnrate.analysis.spectra import singular_values

FLOORS = {1: 20, 4: 20, 16: 20, 32: 6, 64: 6}


def seconds(call, repeats: int = 7) -> float:
    """Least processor time of several runs, after one to warm up."""
    call()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    torch.set_num_threads(1)
    g = torch.Generator().manual_seed(0)
    print("m_h   svdvals (ms)   factors (ms)   ratio   needed   difference")
    for mh, floor in FLOORS.items():
        q, k = torch.randn(2, 96, 197, mh, generator=g)
        dense = seconds(lambda q=q, k=k: torch.linalg.svdvals(q @ k.mT))
        ours = seconds(lambda q=q, k=k: singular_values(q, k))
        exact = torch.linalg.svdvals(q.double() @ k.double().mT)
        difference = ((singular_values(q, k) - exact[:, :mh]).abs().amax(-1) / exact[:, 0]).max()
        print(
            f"{mh:3d}   {dense * 1e3:12.1f}   {ours * 1e3:12.2f}   {dense / ours:4.0f}x   {floor:5d}x   {difference:.0e}"
        )


if __name__ == "__main__":
    main()
