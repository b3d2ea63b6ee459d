"""Sizes that params.yaml accepts can be built and trained for a step: no stage falls over what `validate` let by."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, configuration, event, given, settings
from hypothesis import strategies as st

from attnrate.core import params
from attnrate.core.errors import UserError
from attnrate.core.params import Group
from attnrate.examples import train as examples
from attnrate.large import loop as large
from attnrate.linear import handset
from attnrate.linear import targets as linear
from attnrate.linear import train as linear_training
from attnrate.ops import profile
from attnrate.optim.schedules import SCHEDULES
from attnrate.rates import constructive, free_kernel, pod
from attnrate.rates import train as rates
from attnrate.schemas.all import Params
from attnrate.schemas.check import check
from attnrate.sources import cifar10
from attnrate.translation import model as seq2seq
from attnrate.translation import train as translation
from attnrate.translation.tokens import Sentences
from attnrate.vit import model as vit
from attnrate.vit import train as vit_training
from attnrate.vit.permute import permutation
from attnrate.vit.view import View
from tests.conftest import NOTES, ROOT
from tests.robustness.test_params_fuzz import dump

SMOKE = profile.overlay(params.read(ROOT / "params.yaml"), params.read(ROOT / "profiles/smoke.yaml"), Path("smoke"))
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


def accepted(section: str, changes: dict[str, dict]) -> Group | None:
    """The section at smoke sizes with other values, as a stage reads it, or None if they are refused."""
    content = copy.deepcopy(SMOKE)
    for group, values in changes.items():
        content[section][group] |= values
    Path("params.yaml").write_text(dump(content))
    found = params.read("params.yaml")
    try:
        check(Params, found, "params.yaml")
    except UserError:
        event("refused")
        return None
    event("accepted")
    ACCEPTED["count"] += 1
    return found[section]


@pytest.fixture(scope="module", autouse=True)
def report(tmp_path_factory):
    """Hypothesis keeps its files out of the repository."""
    configuration.set_hypothesis_home_dir(tmp_path_factory.mktemp("hypothesis"))
    yield
    NOTES.append(f"params.yaml: {ACCEPTED['count']} configurations accepted, built and trained for a step")


def heads(most: int = 6):
    return st.lists(st.integers(1, most), min_size=1, max_size=3, unique=True)


def group(**values):
    return st.fixed_dictionaries(values)


def recipe(name: str):
    own = SMOKE["rates"]["recipes"][name] | {"steps": 1, "warmup": 0}
    return group(mh=heads(40), muon=st.sampled_from([None, 0.01])).map(lambda changes: own | changes)


@sizes(150)
@given(
    target=group(
        pairings=st.sampled_from([["dyadic-0", "same"], ["same", "dyadic-0", "dyadic-1"], ["dyadic-0"]]),
        tau=st.integers(2, 5),
        eval_size=st.integers(1, 2),
        terms=st.sampled_from([2, 3, 5, 64]),
        ranks=st.lists(st.sampled_from([1, 3, 64, "inf"]), min_size=1, max_size=2, unique=True),
    ),
    model=group(n=st.integers(3, 24), width=st.integers(4, 9)),
    constructive=group(mh=heads(), width_rank=st.integers(1, 6)),
    free_kernel=group(mh=heads(), modes=st.integers(4, 8), batch=st.integers(1, 2), steps=st.just(1)),
    train=group(queries=st.integers(1, 5), points=st.integers(4, 8), batch=st.integers(1, 2)),
    recipes=group(paper=recipe("paper"), trained=recipe("trained")),
)
def test_rates(**changes):
    p = accepted("rates", changes)
    if p is None:
        return
    targets = list(pod.make_grid(**p.target))
    assert len({t.name for t in targets}) == len(targets)
    for target in (targets[0], targets[-1]):
        for mh in p.constructive.mh:
            assert np.isfinite(constructive.errors(target, mh, **p.model)["mse"])
    wide = pod.of_rank(p.target.alphas[0], p.constructive.width_rank, targets[0].x)
    assert np.isfinite(constructive.errors(wide, p.constructive.width_rank, **p.model)["mse"])
    assert free_kernel.errors(targets[0], p.free_kernel, p.model), "the free kernel has something to do"
    for own in p.recipes.values():
        chosen = list(pod.make_grid(**p.target | {"pairings": p.train.pairings, "alphas": own.alphas}))
        cells = [(t, mh, 0) for t in range(len(chosen)) for mh in own.mh]
        _, history = rates.fit(chosen, cells, own, p.model, p.train, label="")
        assert len(history.columns) == len(cells)


@sizes(10)
@given(
    target=group(tau=st.integers(19, 30)),
    model=group(n=st.integers(5, 9), width=st.integers(5, 12)),
    train=group(batch=st.integers(1, 3), steps=st.just(3)),
    mh=st.integers(1, 256),
)
def test_linear(mh, **changes):
    p = accepted("linear", changes)
    if p is None:
        return
    cells = linear.replicates(linear.make_all(**p.target), p.cells.names, p.cells.seeds)
    targets = [t for t, _ in cells]
    test = Group(size=1, seed=0)
    for name, recipe in [*p.recipes.items(), ("learned-filter", p.recipes.centred)]:
        errors, _, _ = linear_training.run_transformer(cells, mh, name, recipe, p.model, p.train, test)
        assert np.isfinite(errors.mse).all() and errors.mse_half.notna().all() == (name != "plain")
    model = handset.build(targets[0].matrix[:, 0], **p.model)
    assert np.isfinite(linear_training.fresh_mse(model, targets[:1], 1, 0)).all()


@sizes(6)
@given(
    model=group(n=st.integers(2, 5), width=st.integers(4, 6)),
    train=group(batch=st.integers(1, 3), gain=st.floats(1e-3, 100), seeds=st.just([0]), warmup=st.just(1)),
    weight=st.floats(1e-3, 1000),
)
def test_examples(weight, **changes):
    tasks = {task: own | {"steps": 2} for task, own in SMOKE["examples"]["tasks"].items()}
    tasks["mass"] |= {"token_weight": weight}
    p = accepted("examples", changes | {"tasks": tasks})
    for task, own in p.tasks.items():
        for variant in own.variants:
            _, history = examples.fit(task, variant, 1, p.model, p.train, own)
            assert np.isfinite(history.values).all()


@sizes(80)
@given(
    model=group(
        width=st.sampled_from([4, 6, 8]),
        heads=st.integers(1, 3),
        image_size=st.sampled_from([12, 24, 33]),
        patch=st.sampled_from([1, 2, 3, 4]),
        depth=st.integers(1, 2),
        mlp_ratio=st.sampled_from([2, 0.3, 64]),
    ),
    main=group(mh=st.integers(1, 3)),
    beside=group(mh=st.just([1])),
    sweep=group(recipe=st.sampled_from(["adamw", "muon"])),
    recipes=group(adamw=group(optimiser=st.sampled_from(["adamw", "sgd"]), lr=st.just(0.1), weight_decay=st.just(0))),
    grid=group(models=st.sampled_from([["qk-1"], ["qk-2", "width-1"], ["qk-3", "head-2", "width-3"]])),
    images=group(train=st.integers(3, 40)),
    train=group(
        batch=st.integers(2, 6),
        accumulate=st.integers(1, 3),
        max_steps=st.sampled_from([None, 1]),
        epochs=st.just(1),
        warmup=st.sampled_from([0.0, 0.99]),
        schedule=st.sampled_from(SCHEDULES),
    ),
)
def test_vit(**changes):
    p = accepted("vit", changes)
    if p is None:
        return
    arrays = vit_training.subset(IMAGES, p.images)
    images = vit_training.Images(arrays["train_x"], arrays["train_y"], p.train.batch, p.recipes[p.sweep.recipe].augment)
    train = Group(p.train | p.recipes[p.sweep.recipe])
    plan = vit_training.plan(train, p.tune, len(images.x), "full")
    assert plan.steps >= 1, "an untrained model would pass for a trained one"
    assert vit_training.plan(train, p.tune, len(images.x), "tune").lr == p.tune.lr
    p10 = torch.from_numpy(permutation("first10", (p.model.image_size // p.model.patch) ** 2, 0))
    for reading, mh in (name.split("-") for name in p.grid.models):
        model = vit.make(reading, int(mh), 0, **p.model)
        assert model(View(p.model.image_size, p=p10)(torch.from_numpy(IMAGES["test_x"]))).isfinite().all()
    checkpoint = Path("c.safetensors")
    checkpoint.unlink(missing_ok=True)
    once = type(plan)(**vars(plan) | {"steps": 1})
    loss = vit_training.loss(View(p.model.image_size), p.train.smoothing)
    large.train(model, images, loss, once, seed=0, checkpoint=checkpoint)


@sizes(20)
@given(
    tokens=group(max_tokens=st.integers(4, 9)),
    model=group(width=st.sampled_from([8, 10, 12]), heads=st.integers(1, 6), ff=st.integers(1, 4), depth=st.just(1)),
    train=group(
        batch_tokens=st.integers(8, 20),
        accumulate=st.integers(1, 20),
        steps=st.just(2),
        average=st.integers(1, 100),
        average_every=st.integers(1, 10**9),
        optimiser=st.sampled_from(["adamw", "muon"]),
    ),
)
def test_translation(**changes):
    p = accepted("translation", changes)
    if p is None:
        return
    sentences = Sentences.of([[5] * (1 + i % p.tokens.max_tokens) for i in range(7)])
    plan, train = translation.recipe(p.train), p.train
    start = seq2seq.build(vocabulary=p.tokens.vocabulary, seed=0, **p.model)
    model = translation.Trainee(start, train.smoothing, plan.steps, train.average, train.average_every)
    passes = []
    model.register_forward_hook(lambda *_: passes.append(1))
    checkpoint = Path("c.safetensors")
    checkpoint.unlink(missing_ok=True)
    pairs = translation.Pairs(sentences, sentences, train.batch_tokens, train.count_padding)
    large.train(model, pairs, translation.loss, plan, seed=0, checkpoint=checkpoint)
    model.finish()
    assert len(passes) == plan.steps * train.accumulate, "every part of a batch holds a sentence"


def test_a_sentence_beyond_the_positions_of_the_model_is_one_error():
    long = Sentences.of([[5] * seq2seq.POSITIONS])
    with pytest.raises(UserError, match="the model 512 positions"):
        translation.Pairs(long, long, 10 * seq2seq.POSITIONS)
