"""What a step of the large loop does not do: wait for a copy, read a loss back, depend on the number of devices."""

from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from attnrate.large import checkpoint
from attnrate.large import loop as large
from tests.large.test_loop import Line


def ready(data=None, accumulate=4, rank=0, world=1, device="cpu", steps=3):
    where = SimpleNamespace(process_index=rank, num_processes=world, device=torch.device(device))
    recipe = large.Recipe(steps=steps, lr=0.1, accumulate=accumulate)
    return large._ready(data or Line(), recipe, 0, 0, where)


@pytest.mark.parametrize(("accumulate", "world", "parts"), [(4, 1, 4), (4, 2, 2), (4, 3, 2), (4, 8, 1), (1, 8, 1)])
def test_processes_share_the_parts_of_a_batch_and_weigh_them_as_one(accumulate, world, parts):
    ranks = [list(ready(accumulate=accumulate, rank=rank, world=world)) for rank in range(world)]
    for steps in zip(*ranks, strict=True):
        assert {len(own) for _, own in steps} == {parts}
        items = [(batch["x"], weight) for _, own in steps for batch, weight in own]
        assert len(torch.cat([x for x, _ in items])) == max(8, world * parts)
        assert sum(weight for _, weight in items) / world == pytest.approx(1)


def test_a_batch_is_ready_before_the_one_before_it_is_used():
    made = []
    for used in large._ahead(made.append(i) or i for i in range(1, 4)):
        assert made == list(range(1, min(used + 1, 3) + 1))


def test_copies_to_a_gpu_are_from_pinned_memory_and_nobody_waits_for_them(monkeypatch):
    """`meta` stands for a GPU."""
    seen, move = [], Tensor.to
    monkeypatch.setattr(Tensor, "pin_memory", lambda self: seen.append("pinned") or self)
    monkeypatch.setattr(Tensor, "to", lambda self, *where, **how: seen.append(how) or move(self, *where, **how))
    ((_, ((batch, _),)),) = ready(accumulate=1, steps=1, device="meta")
    assert {tensor.device.type for tensor in batch.values()} == {"meta"}
    assert seen == ["pinned", {"non_blocking": True}] * 2


def test_losses_are_read_when_they_are_told_and_not_at_every_step(tmp_path, monkeypatch):
    """On a GPU each reading waits for all that was started before it."""
    waits = []
    for name in ("item", "tolist", "__bool__", "__float__", "__int__", "numpy"):
        plain = getattr(Tensor, name)
        monkeypatch.setattr(Tensor, name, lambda self, plain=plain: waits.append(plain.__name__) or plain(self))
    monkeypatch.setattr(large, "save", lambda *_: None)
    found = []
    for steps in (30, 45):  # fewer than NEWS
        waits.clear()
        recipe = large.Recipe(steps=steps, lr=0.1, history=1, checkpoint=10**9, clip=1.0, accumulate=2)
        options = {"seed": 0, "checkpoint": tmp_path / "c.safetensors"}
        large.train(nn.Linear(1, 2), Line(), large.classification_loss(), recipe, **options)
        found.append(list(waits))
    assert found[0] == found[1] and found[0].count("tolist") == 1


def test_the_key_of_a_checkpoint_knows_nothing_of_devices(monkeypatch):
    before = checkpoint.key({"lr": 1}, [])
    for name, value in (("WORLD_SIZE", "8"), ("RANK", "3"), ("LOCAL_RANK", "3"), ("CUDA_VISIBLE_DEVICES", "0,1")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert checkpoint.key({"lr": 1}, []) == before


def test_random_numbers_go_back_to_the_process_that_had_them(tmp_path, monkeypatch):
    """Those of its GPU too; another number of processes draws its own, and goes on all the same."""
    model, path, given = nn.Linear(1, 2), tmp_path / "c.safetensors", []
    optimiser = large.make_optimiser(model, large.Recipe(steps=1, lr=0.1))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda: torch.full((16,), 7, dtype=torch.uint8))
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state: given.append(state[0].item()))
    torch.manual_seed(5)
    other = torch.get_rng_state()
    torch.manual_seed(4)

    def gather(row):
        second = other if row.shape[1] == len(other) else row[0] + 1
        return torch.stack([row[0], second])

    gathered = checkpoint.random_states(SimpleNamespace(gather=gather, device=torch.device("cpu")))
    checkpoint.save(path, model, optimiser, gathered, {"step": 3})
    for rank, seed in ((0, 4), (1, 5)):
        torch.manual_seed(99)
        assert checkpoint.restore(path, model, optimiser, rank, world=2) == {"step": 3}
        assert torch.initial_seed() == seed and given.pop() == 7 + rank
    torch.manual_seed(99)
    assert checkpoint.restore(path, model, optimiser, 0, world=8) == {"step": 3}
    assert torch.initial_seed() == 99 and not given
