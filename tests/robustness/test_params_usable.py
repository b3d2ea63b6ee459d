"""Sizes that params.yaml accepts can be built and trained for a step: no later stage falls over what `validate` let by."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, configuration, event, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from attnrate.ops import profile
from attnrate.schemas import check as config
from attnrate.core.errors import UserError
from attnrate.sources import cifar10
from attnrate.vit.permute import permutation
from attnrate.translation.tokens import Sentences
from attnrate.vit.view import View
from attnrate.rates import constructive
from attnrate.translation import model as seq2seq
from attnrate.vit import model as vit
from attnrate.schemas.all import Params
from attnrate.linear import targets as linear
from attnrate.rates import pod
from attnrate.examples import train as gallery
from attnrate.large import loop as large
from attnrate.rates import train as rates
from attnrate.translation import train as translation
from attnrate.linear import train as linear_training
from attnrate.vit import train as vit_training
from tests.conftest import NOTES, ROOT

SMOKE = profile.overlay(config.read(ROOT / "params.yaml"), config.read(ROOT / "profiles/smoke.yaml"), "smoke")
ACCEPTED = {"count": 0}
IMAGES = cifar10.toy(train=40, test=4)


def sizes(count: int):
    return settings(
        max_examples=count,
        derandomize=True,
        deadline=None,
        database=None,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )


def accepted(section: str, **changes) -> BaseModel | None:
    """The section at smoke sizes with other values, or None if they are refused."""
    content = SMOKE | {section: SMOKE[section] | changes}
    try:
        found = getattr(config.check(Params, content, "params.yaml"), section)
    except UserError:
        event("refused")
        return None
    event("accepted")
    ACCEPTED["count"] += 1
    return found


@pytest.fixture(scope="module", autouse=True)
def report(tmp_path_factory):
    """Hypothesis keeps its files out of the repository."""
    configuration.set_hypothesis_home_dir(tmp_path_factory.mktemp("hypothesis"))
    yield
    NOTES.append(f"params.yaml: {ACCEPTED['count']} configurations accepted, built and trained for a step")


def heads(most: int = 6):
    return st.lists(st.integers(1, most), min_size=1, max_size=3, unique=True)


@sizes(150)
@given(
    mh=heads(),
    train_mh=heads(40),
    n=st.integers(3, 24),
    width=st.integers(4, 9),
    width_rank=st.integers(1, 6),
    free_modes=st.integers(4, 8),
    tau=st.integers(2, 5),
    queries=st.integers(1, 5),
    grid=st.integers(2, 5),
    batch=st.integers(1, 2),
    eval_size=st.integers(1, 2),
    terms=st.integers(2, 5),
    ranks=st.lists(st.sampled_from([1, 3, 64, "inf"]), min_size=1, max_size=2, unique=True),
)
def test_rates(**changes):
    p = accepted("rates", **changes)
    if p is None:
        return
    targets = [pod.make(a, r, terms=p.terms, tau=p.tau, size=p.eval_size, seed=0) for a in p.alphas for r in p.ranks]
    assert len({t.name for t in targets}) == len(targets)
    assert any(2 * mh + 1 <= p.n for mh in p.mh), "the free kernel has something to do"
    for mh in (*p.mh, p.width_rank):
        for target in (targets[0], targets[-1]):
            rank = min(mh, len(target.sigma))
            phi = pod.phi(np.arange(1, rank + 1), np.linspace(0, 1, constructive.FIT_GRID))
            model = constructive.build(mh, phi, None, target.sigma[:rank], n=p.n, width=p.width)
            assert np.isfinite(rates.predict(model, target.x)).all()
    cells = [(t, mh, 0) for t in range(len(targets)) for mh in p.train_mh]
    sizes = {"n": p.n, "width": p.width, "batch": p.batch, "grid": p.grid, "queries": p.queries}
    recipe = rates.Recipe(p.paper_lr)
    assert len(rates.fit(targets, cells, recipe, steps=1, label="", **sizes)[1].columns) == len(cells)


@sizes(10)
@given(
    n=st.integers(1, 5),
    width=st.integers(1, 6),
    batch=st.integers(1, 3),
    tau=st.integers(19, 30),
    mh=st.integers(1, 256),
)
def test_linear(mh, **changes):
    p = accepted("linear", **changes)
    if p is None:
        return
    targets = [t for t in linear.make_all(p.tau, 0, 0) if t.name in p.cells]
    for recipe, filtered in (("centred", False), ("plain", False), ("centred", True)):
        model, _ = linear_training.train_transformer(
            targets,
            list(range(len(targets))),
            mh,
            recipe=recipe,
            n=p.n,
            width=p.width,
            steps=1,
            lr=p.lr,
            warmup=p.warmup,
            batch=p.batch,
            gain=p.gain,
            learned_filter=filtered,
        )
        assert np.isfinite(linear_training.fresh_mse(model, targets, 1, 0)).all()


@sizes(6)
@given(
    n=st.integers(2, 5),
    width=st.integers(4, 6),
    batch=st.integers(1, 3),
    gain=st.floats(1e-3, 100),
    token_weight=st.floats(1e-3, 1000),
)
def test_gallery(**changes):
    p = accepted("gallery", **changes)
    for task, variants in gallery.VARIANTS.items():
        for variant in variants.values():
            gallery.fit(
                task,
                variant,
                [0],
                mh=1,
                n=p.n,
                width=p.width,
                gain=p.gain,
                steps=1,
                batch=p.batch,
                lr=p.lr,
                warmup=p.warmup,
                token_weight=p.token_weight,
                label="",
            )


@sizes(300)
@given(
    width=st.sampled_from([1, 4, 6, 8]),
    heads=st.integers(1, 4),
    main_mh=st.integers(1, 4),
    mh_sweep=heads(4),
    image_size=st.sampled_from([8, 12, 33]),
    patch=st.integers(1, 9),
    depth=st.integers(1, 2),
    mlp_ratio=st.sampled_from([0.1, 0.3, 2, 64]),
    batch=st.integers(1, 6),
    accumulate=st.integers(1, 6),
    train_images=st.integers(1, 40),
    max_steps=st.sampled_from([None, 1]),
    epochs=st.just(1),
    readings=st.sampled_from([["qk"], ["head"], ["width"], ["qk", "head", "width"]]),
    warmup=st.sampled_from([0.0, 0.99]),
    schedule=st.sampled_from(["constant", "cosine", "one-cycle", "linear", "inverse-sqrt"]),
    optimiser=st.sampled_from(["adamw", "sgd"]),
)
def test_vit(**changes):
    p = accepted("vit", **changes)
    if p is None:
        return
    images = vit_training.Images(IMAGES["train_x"][: p.train_images], IMAGES["train_y"][: p.train_images], p.batch)
    recipe = vit_training.recipe(p, p.train_images, "full")
    assert recipe.steps >= 1, "an untrained model would pass for a trained one"
    p10 = torch.from_numpy(permutation("first10", (p.image_size // p.patch) ** 2, 0))
    for reading in p.readings:
        model = vit.make(p, reading, max(p.mh_sweep), seed=0)
        assert model(View(p.image_size, p=p10)(torch.from_numpy(IMAGES["test_x"]))).isfinite().all()
    Path("c.safetensors").unlink(missing_ok=True)
    once = type(recipe)(**vars(recipe) | {"steps": 1})
    large.train(
        model,
        images,
        vit_training.loss(View(p.image_size), p.smoothing),
        once,
        seed=0,
        checkpoint=Path("c.safetensors"),
    )


@sizes(60)
@given(
    width=st.sampled_from([8, 10, 12]),
    heads=st.integers(1, 6),
    ff=st.integers(1, 4),
    depth=st.just(1),
    max_tokens=st.integers(4, 9),
    batch_tokens=st.integers(8, 20),
    accumulate=st.integers(1, 20),
    average=st.integers(1, 100),
    average_every=st.integers(1, 10**9),
)
def test_translation(**changes):
    p = accepted("translation", **changes)
    if p is None:
        return
    sentences = Sentences.of([[5] * (1 + i % p.max_tokens) for i in range(7)])
    model = translation.Trainee(seq2seq.make(p, 0), p.smoothing, 2, p.average, p.average_every, p.accumulate)
    recipe = large.Recipe(steps=2, lr=p.lr, accumulate=p.accumulate)
    Path("c.safetensors").unlink(missing_ok=True)
    pairs = translation.Pairs(sentences, sentences, p.batch_tokens)
    large.train(model, pairs, translation.loss, recipe, seed=0, checkpoint=Path("c.safetensors"))
    model.finish()
    assert int(model.passes) == 2 * p.accumulate, "every part of a batch holds a sentence"


def test_a_sentence_beyond_the_positions_of_the_model_is_one_error():
    long = Sentences.of([[5] * seq2seq.POSITIONS])
    with pytest.raises(UserError, match="the model 512 positions"):
        translation.Pairs(long, long, 10 * seq2seq.POSITIONS)
