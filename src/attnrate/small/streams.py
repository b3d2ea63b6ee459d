"""Random numbers for a stack of models, a stream for each seed."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


class Streams:
    """Model i draws from the stream seeds[i]: models of one seed see the same inputs, and can be compared in pairs.

    The streams are independent of each other, and of the numbers by which a model of that seed starts.
    """

    def __init__(self, seeds: Sequence[int]):
        distinct = sorted(set(seeds))
        self.which = torch.tensor([distinct.index(s) for s in seeds])  # (M,): the stream of each model
        # Mixed, since manual_seed looks at 32 bits alone.
        mixed = (int(np.random.SeedSequence([s, 1]).generate_state(1)[0]) for s in distinct)
        self.generators = [torch.Generator().manual_seed(s) for s in mixed]

    def rand(self, *shape: int) -> Tensor:  # (streams, *shape), uniform on [0, 1]
        return torch.stack([torch.rand(shape, generator=g) for g in self.generators])

    def state(self) -> list[Tensor]:
        return [g.get_state() for g in self.generators]

    def restore(self, state: list[Tensor]) -> None:
        for g, s in zip(self.generators, state, strict=True):
            g.set_state(s)
