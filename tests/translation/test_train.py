"""Training of translation models: batches, averaging of states, and runs that get killed."""

import functools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from attnrate.core import files
from attnrate.core.errors import UserError
from attnrate.core.params import Group
from attnrate.core.stage import Outs
from attnrate.large import checkpoint
from attnrate.large import loop as large
from attnrate.sources import corpora
from attnrate.translation import model as seq2seq
from attnrate.translation import tokens
from attnrate.translation import train as translation
from attnrate.translation.tokens import EOS, PAD, Sentences
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
        batch = pairs.batch(index)
        assert pairs.size(index) == len(batch["real"]) == (batch["target"] != PAD).sum()
        assert max(t.numel() for t in batch.values()) <= 400
        sizes.append((batch["target"] != PAD).sum().item())
        assert ((batch["source"] == EOS).sum(1) == 1).all() and ((batch["target"] == EOS).sum(1) == 1).all()
    assert np.mean(sizes) > 320, "much of the budget is padding"
    again, other = pairs.order(np.random.default_rng(0)), pairs.order(np.random.default_rng(1))
    assert all(np.array_equal(a, b) for a, b in zip(order, again, strict=True))
    assert [len(b) for b in order] != [len(b) for b in other]


def test_a_budget_may_leave_out_padding():
    lists = [[7] * n for n in (3, 20, 5, 9, 14, 30, 2, 6)] * 20
    source, target = Sentences.of(lists), Sentences.of(lists[1:] + lists[:1])
    free, padded = (Pairs(source, target, 120, count) for count in (False, True))
    for pairs in (free, padded):
        order = pairs.order(np.random.default_rng(0))
        assert sorted(i for b in order for i in b) == list(range(160))
        tokens = [max((side.lengths[b] + 1).sum() for side in (source, target)) for b in order]
        assert max(tokens) <= 120
        filled = [pairs.batch(b)["target"].numel() for b in order]
        assert (max(filled) <= 120) == (pairs is padded)
    assert len(free.order(np.random.default_rng(0))) < len(padded.order(np.random.default_rng(0)))


def test_parts_of_a_batch_count_by_their_tokens(pairs):
    """So that neither memory nor the number of GPUs changes the gradient."""
    weights = []
    for accumulate in (1, 3):
        trainee = Trainee(seq2seq.build(**SHAPE | {"dropout": 0.0}, seed=0), 0.1, 4, 1, 1)
        recipe = large.Recipe(steps=4, lr=0.1, optimiser="sgd", accumulate=accumulate)
        checkpoint = Path(f"{accumulate}.safetensors")
        history = large.train(trainee, pairs, translation.loss, recipe, seed=0, checkpoint=checkpoint)
        weights.append((trainee._flat(), torch.tensor(history.loss)))
    for one, other in zip(*weights, strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-5)


def test_a_budget_below_the_longest_sentence_is_an_error():
    one = Sentences.of([[5] * 30])
    with pytest.raises(UserError, match=r"translation\.train\.batch_tokens = 30 .*31 tokens"):
        Pairs(one, one, 30)


def test_the_loss_is_the_mean_over_target_tokens(pairs):
    model = seq2seq.build(**SHAPE, seed=0)
    trainee = Trainee(model, 0.1, 10, 1, 1).eval()
    batch = pairs.batch(np.arange(6))
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
            states.append(self._flat().clone())
            return super().forward(**batch)

    trainee = Watched(seq2seq.build(**SHAPE, seed=0), 0.1, 12, 3, 4)
    recipe = large.Recipe(steps=12, lr=1e-3, accumulate=accumulate, betas=(0.9, 0.98))
    options = {"seed": 0, "checkpoint": Path("c.safetensors"), "ended": trainee.ended}
    large.train(trainee, pairs, translation.loss, recipe, **options)
    states = states[::accumulate]
    last = trainee._flat().clone()
    trainee.finish()
    assert torch.allclose(trainee._flat(), (states[4] + states[8] + last) / 3, atol=1e-7)  # after 4, 8 and 12 steps
    assert trainee.model.lm_head.weight is trainee.model.model.shared.weight


def test_average_of_one_is_the_last_state_and_early_states_do_not_count(pairs):
    for average, taken in ((1, set()), (5, {2, 7})):
        assert Trainee(seq2seq.build(**SHAPE, seed=0), 0.1, 12, average, 5).taken == taken


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_a_model_learns_the_toy_language(pairs, optimiser):
    trainee = Trainee(seq2seq.build(**SHAPE | {"width": 32}, seed=0), 0.1, 60, 1, 1)
    how = {"optimiser": optimiser, "betas": (0.9, 0.98), "clip": 1.0}
    recipe = large.Recipe(steps=60, lr=1e-2, warmup=10, schedule="linear", history=4, **how)
    before = translation.evaluate(trainee, pairs, torch.device("cpu"))
    history = large.train(trainee, pairs, translation.loss, recipe, seed=0, checkpoint=Path("c.safetensors"))
    assert translation.evaluate(trainee, pairs, torch.device("cpu")) < before - 0.7
    assert history.loss.is_monotonic_decreasing and len(history) == 4


TRAIN = Group(
    {
        "seeds": [0],
        "smoothing": 0.1,
        "batch_tokens": 400,
        "count_padding": True,
        "accumulate": 1,
        "steps": 60,
        "max_steps": None,
        "lr": 0.003,
    }
    | {"optimiser": "muon", "schedule": "linear", "warmup": 0.1, "clip": 1.0, "checkpoint": 1}
    | {"average": 3, "average_every": 5}
)


def test_a_recipe_is_that_of_the_parameters_and_tuning_changes_what_it_names():
    full, tuned = translation.recipe(TRAIN), translation.recipe(TRAIN, Group(variants=["permuted"], steps=20, lr=0.001))
    assert (full.steps, full.lr, full.warmup, full.schedule, full.clip) == (60, 0.003, 6, "linear", 1.0)
    assert (tuned.steps, tuned.lr, tuned.warmup, tuned.schedule, tuned.clip) == (20, 0.001, 2, "linear", 1.0)
    assert full.optimiser == tuned.optimiser == "muon" and full.betas == tuned.betas == (0.9, 0.98)
    assert translation.recipe(Group(TRAIN | {"max_steps": 2})).steps == 2


def test_every_run_gets_a_row_a_curve_and_weights(monkeypatch):
    """The state of the end is averaged with earlier ones, and a permuted run sees permuted sources."""
    tokens.save(Path("tokens.npz"), encoded())
    seen = []
    monkeypatch.setenv("ATTNRATE_CORES", "1")  # in this process, where `seen` is
    monkeypatch.setattr(translation, "permute", lambda s: seen.append(len(s)) or tokens.permute(s))
    start = functools.partial(seq2seq.build, seed=0, **SHAPE)
    runs = [translation.Run("original", 0, start)]
    runs.append(translation.Run("permuted", 0, start, permuted=True, tune=Group(steps=4, lr=0.001)))
    with Outs() as to:
        to.name = "demo"
        train = Group(TRAIN | {"steps": 8, "average": 1})
        translation.train_all(runs, to, Path("tokens.npz"), [], model=Group(SHAPE), train=train)
        assert Path("data/demo").is_dir() and not list(checkpoint.FOLDER.glob("*")), "in place"
    table, curves = (pd.read_csv(f"reports/results/demo/{name}.csv") for name in ("losses", "history"))
    columns = ["variant", "seed", "steps", "parameters", "train_loss", "dev_loss"]
    assert table.columns.tolist() == columns and table.steps.tolist() == [8, 4]
    assert set(table.parameters) == {sum(p.numel() for p in start().parameters() if p.requires_grad)}
    assert curves.groupby("variant").step.max().to_dict() == {"original": 8, "permuted": 4} and len(seen) == 2
    found = encoded()
    dev = Pairs(found["dev_en"], found["dev_de"], 400)
    trained = Trainee(seq2seq.load(Path("data/demo/original_seed0.safetensors"), **SHAPE), 0.1, 8, 1, 1)
    loss = translation.evaluate(trained, dev, torch.device("cpu"))
    assert loss == pytest.approx(table.dev_loss[0], rel=1e-5)
    assert {p.name for p in Path("data/demo").iterdir()} == {f"{run.name}.safetensors" for run in runs}


def stage(folder):
    command = [sys.executable, str(ROOT / "stages" / "translation_main.py"), "all"]
    with open("said.txt", "w") as said:
        return subprocess.Popen(command, cwd=folder, stderr=said, env=os.environ | {"OMP_NUM_THREADS": "1"})


def said():
    return Path("said.txt").read_text()


@pytest.mark.slow
def test_a_stage_killed_twice_ends_in_the_same_bytes(tmp_path, monkeypatch):
    """The second time as it goes on from a checkpoint."""
    monkeypatch.chdir(tmp_path)
    sizes = {k: v for k, v in SHAPE.items() if k != "vocabulary"}
    own = {"tokens": {"vocabulary": SHAPE["vocabulary"]}, "model": sizes, "train": TRAIN}
    whole, broken = Path("whole"), Path("broken")
    for folder in (whole, broken):
        (folder / "data/translation_tokens").mkdir(parents=True)
        tokens.save(folder / "data/translation_tokens/tokens.npz", encoded())
        files.write_json(folder / "params.yaml", {"threads": 1, "device": "auto", "translation": own})  # JSON is YAML
    assert stage(whole).wait(200) == 0, said()

    def last():
        found = list(broken.glob(".scratch/checkpoints/*/*.safetensors"))
        return found[0].stat().st_mtime_ns if found else 0

    for _ in range(2):
        before, process = last(), stage(broken)
        end = time.monotonic() + 200
        while last() == before:
            assert process.poll() is None and time.monotonic() < end, said()
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not (broken / "reports").exists() and not (broken / "data/translation_main").exists()
    assert stage(broken).wait(200) == 0 and "continuing after step" in said(), said()
    for name in ("reports/results/translation_main/all/losses.csv", "reports/results/translation_main/all/history.csv"):
        assert (whole / name).read_bytes() == (broken / name).read_bytes()
    weights = "data/translation_main/all/original_seed0.safetensors"
    assert (whole / weights).read_bytes() == (broken / weights).read_bytes()
    assert not list(broken.glob(".scratch/checkpoints/*"))
