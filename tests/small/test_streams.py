"""Random numbers for a stack: a stream for each seed, whatever else is in the stack."""

import itertools

import numpy as np
import pytest
import torch

from attnrate.small.streams import Streams

N = 10_000  # numbers, whose correlations by chance stay below 0.05


def test_models_of_one_seed_share_a_stream():
    streams = Streams([3, 1, 3])
    x = streams.rand(4, 5)
    assert x.shape == (2, 4, 5) and 0 <= x.min() and x.max() < 1
    first, other, again = x[streams.which]
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_a_stream_is_the_same_in_any_stack_and_goes_on():
    alone, stack = Streams([3]), Streams([9, 3, 0])
    drawn = []
    for shape in ((4, 5), (7,), (4, 5)):
        drawn.append(alone.rand(*shape)[0])
        assert torch.equal(drawn[-1], stack.rand(*shape)[stack.which][1])
    assert not torch.equal(drawn[0], drawn[2])


@pytest.mark.parametrize("seeds", [range(4), (0, 1000, 1001, 2**31 - 1)])
def test_streams_are_independent_of_each_other_and_of_the_starts_of_all_models(seeds):
    """A model of seed s starts from the numbers of torch.Generator().manual_seed(s)."""
    starts = [torch.rand(N, generator=torch.Generator().manual_seed(s)) for s in seeds]
    every = [*Streams(seeds).rand(N), *starts]
    for a, b in itertools.combinations(every, 2):
        assert abs(np.corrcoef(a, b)[0, 1]) < 0.05
