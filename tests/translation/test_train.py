"""Training of translation models: batches, averaging of states, and runs that get killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from attnrate.core.errors import UserError
from attnrate.sources import corpora
from attnrate.translation import tokens
from attnrate.translation.tokens import EOS, PAD, Sentences
from attnrate.translation import model as seq2seq
from attnrate.large import loop as large
from attnrate.translation import train as translation
from attnrate.translation.train import Pairs, Trainee
from tests.conftest import ROOT

SHAPE = {"vocabulary": 300, "width": 16, "depth": 1, "heads": 2, "ff": 32, "dropout": 0.1}


def encoded(size=300):
    corpus = corpora.toy()
    Path("v.model").write_bytes(tokens.learn((side for pair in corpus["train"] for side in pair), size))
    vocabulary = tokens.Vocabulary(Path("v.model"))
    return {
        f"{part}_{side}": vocabulary.encode([p[i] for p in both])
        for part, both in corpus.items()
        for i, side in enumerate(("en", "de"))
    }


@pytest.fixture
def pairs():
    found = encoded()
    return Pairs(found["train_en"], found["train_de"], 400)


def test_batches_hold_every_sentence_once_within_the_budget(pairs):
    order = pairs.order(np.random.default_rng(0))
    assert sorted(i for b in order for i in b) == list(range(600))
    sizes = []
    for index in order:
        batch = pairs.batch(index, torch.Generator())
        assert max(t.numel() for t in batch.values()) <= 400
        sizes.append((batch["target"] != PAD).sum().item())
        assert ((batch["source"] == EOS).sum(1) == 1).all() and ((batch["target"] == EOS).sum(1) == 1).all()
    assert np.mean(sizes) > 320, "much of the budget is padding"
    again, other = pairs.order(np.random.default_rng(0)), pairs.order(np.random.default_rng(1))
    assert all(np.array_equal(a, b) for a, b in zip(order, again, strict=True))
    assert [len(b) for b in order] != [len(b) for b in other]


def test_a_budget_below_the_longest_sentence_is_an_error():
    one = Sentences.of([[5] * 30])
    with pytest.raises(UserError, match=r"translation\.batch_tokens = 30 .*31 tokens"):
        Pairs(one, one, 30)


def test_the_loss_is_the_mean_over_target_tokens(pairs):
    model = seq2seq.build(**SHAPE, seed=0)
    trainee = Trainee(model, 0.1, 10, 1, 1).eval()
    batch = pairs.batch(np.arange(6), torch.Generator())
    total, count = 0.0, 0
    for i in range(6):  # one by one, without padding
        source, target = pairs.source[i].astype(np.int64), [*pairs.target[i].tolist(), EOS]
        with torch.no_grad():
            logits = model(
                torch.tensor([[*source, EOS]]), decoder_input_ids=torch.tensor([[PAD, *target[:-1]]])
            ).logits[0]
        total -= torch.log_softmax(logits, -1)[range(len(target)), target].sum().item()
        count += len(target)
    assert trainee(**batch).item() == pytest.approx(total / count, rel=1e-5)
    assert translation.evaluate(trainee, pairs, torch.device("cpu")) == pytest.approx(np.log(300), rel=0.3)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_the_last_states_are_averaged(pairs, accumulate):
    states = []

    class Watched(Trainee):
        def forward(self, **batch):
            if int(self.passes) % accumulate == 0:
                states.append(self._flat().clone())
            return super().forward(**batch)

    trainee = Watched(seq2seq.build(**SHAPE, seed=0), 0.1, 12, 3, 4, accumulate)
    recipe = large.Recipe(steps=12, lr=1e-3, accumulate=accumulate, betas=(0.9, 0.98))
    large.train(trainee, pairs, translation.loss, recipe, seed=0, checkpoint=Path("c.safetensors"))
    last = trainee._flat().clone()
    trainee.finish()
    assert torch.allclose(trainee._flat(), (states[4] + states[8] + last) / 3, atol=1e-7)  # after 4, 8 and 12 steps
    assert trainee.model.lm_head.weight is trainee.model.model.shared.weight


def test_average_of_one_is_the_last_state_and_early_states_do_not_count(pairs):
    for average, taken in ((1, set()), (5, {2, 7})):
        assert Trainee(seq2seq.build(**SHAPE, seed=0), 0.1, 12, average, 5).taken == taken


def test_a_model_learns_the_toy_language(pairs):
    trainee = Trainee(seq2seq.build(**SHAPE | {"width": 32}, seed=0), 0.1, 60, 1, 1)
    recipe = large.Recipe(steps=60, lr=1e-2, warmup=10, schedule="linear", betas=(0.9, 0.98), clip=1.0, history=4)
    before = translation.evaluate(trainee, pairs, torch.device("cpu"))
    history = large.train(trainee, pairs, translation.loss, recipe, seed=0, checkpoint=Path("c.safetensors"))
    assert translation.evaluate(trainee, pairs, torch.device("cpu")) < before - 0.7
    assert history.loss.is_monotonic_decreasing and len(history) == 4


PARAMS = {
    "profile": "smoke",
    "threads": 1,
    "translation": SHAPE
    | {
        "corpus": "toy",
        "seeds": [0],
        "smoothing": 0.1,
        "batch_tokens": 400,
        "accumulate": 1,
        "steps": 60,
        "max_steps": None,
        "lr": 0.003,
        "schedule": "linear",
        "warmup": 0.1,
        "clip": 1.0,
        "checkpoint": 1,
        "average": 3,
        "average_every": 5,
    },
}


def stage(folder, out):
    command = [
        sys.executable,
        str(ROOT / "stages" / "train_translation.py"),
        "--params",
        "params.yaml",
        "--tokens",
        "tokens.npz",
        "--out",
        f"{out}.csv",
        "--history",
        f"{out}_history.csv",
        "--weights",
        out,
        "--record",
        f"{out}.json",
    ]
    with open("said.txt", "w") as said:
        return subprocess.Popen(command, cwd=folder, stderr=said, env=os.environ | {"OMP_NUM_THREADS": "1"})


def said():
    return Path("said.txt").read_text()


@pytest.mark.slow
def test_a_stage_killed_five_times_ends_in_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tokens.save(Path("tokens.npz"), encoded())
    Path("params.yaml").write_text(yaml.safe_dump(PARAMS))
    assert stage(tmp_path, "whole").wait(200) == 0, said()

    def checkpoint():
        found = list(Path(".scratch/checkpoints").glob("*/*.safetensors"))
        return found[0].stat().st_mtime_ns if found else 0

    for _ in range(5):
        before, process = checkpoint(), stage(tmp_path, "broken")
        end = time.monotonic() + 200
        while checkpoint() == before:
            assert process.poll() is None and time.monotonic() < end, said()
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not Path("broken").exists()
    assert stage(tmp_path, "broken").wait(200) == 0 and "continuing after step" in said(), said()
    for name in (".csv", "_history.csv", "/original_seed0.safetensors"):
        assert Path(f"whole{name}").read_bytes() == Path(f"broken{name}").read_bytes()
    assert not list(Path(".scratch/checkpoints").glob("*"))
