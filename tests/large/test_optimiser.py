"""Which parameters of the project's models each optimiser takes, and which of them decay."""

import re

import pytest
import torch

from attnrate.large.loop import Recipe, make_optimiser
from attnrate.optim.muon import Muon, like_adam
from attnrate.translation import model as seq2seq
from attnrate.translation.train import Trainee
from attnrate.vit import model as vit

IMAGES = {"image_size": 32, "patch": 8, "width": 16, "depth": 2, "heads": 2, "mlp_ratio": 2.0}
SENTENCES = {"vocabulary": 50, "width": 8, "depth": 2, "heads": 2, "ff": 16, "dropout": 0.0}
MODELS = {  # the model, its matrices inside, and those at its edges
    "vit": (
        lambda: vit.build("qk", 3, **IMAGES),
        r"blocks\.\d\.(attn\.(qkv|proj)|mlp\.fc[12])\.weight",
        {"patch_embed.proj.weight", "head.weight"},
    ),
    "avg": (
        lambda: vit.build("head", 3, pool="avg", **IMAGES),
        r"blocks\.\d\.(attn\.(qkv|proj)|mlp\.fc[12])\.weight",
        {"patch_embed.proj.weight", "head.weight"},
    ),
    "translation": (
        lambda: Trainee(seq2seq.build(seed=0, **SENTENCES), 0.1, 10, 1, 1),
        r"model\.model\.(en|de)coder\.layers\.\d\.((self|encoder)_attn\.(q|k|v|out)_proj|fc[12])\.weight",
        {"model.model.shared.weight"},
    ),
}
each_model = pytest.mark.parametrize("name", MODELS)


def groups(model, optimiser):
    """The optimiser, its groups, and the names of the parameters in each; every parameter that learns is in one."""
    made = make_optimiser(model, Recipe(steps=1, lr=0.1, optimiser=optimiser, weight_decay=0.3))
    names = {id(p): n for n, p in model.named_parameters()}
    found = [[names[id(p)] for p in group["params"]] for group in made.param_groups]
    assert sorted(n for part in found for n in part) == sorted(
        n for n, p in model.named_parameters() if p.requires_grad
    )
    return made, made.param_groups, [set(part) for part in found]


@each_model
def test_muon_takes_the_matrices_inside_and_adamw_the_rest(name):
    build, pattern, edges = MODELS[name]
    made, (first, *others), (inside, decaying, free) = groups(build(), "muon")
    assert type(made) is Muon and first["length"] is like_adam and not any("length" in g for g in others)
    assert all(re.fullmatch(pattern, n) for n in inside) and decaying == edges
    assert len(inside) == {"vit": 2 * 4, "avg": 2 * 4, "translation": 2 * 6 + 2 * 10}[name]
    assert [g["weight_decay"] for g in made.param_groups] == [0.3, 0.3, 0.0]
    free = {n.rpartition(".")[2] for n in free}
    assert free == {"weight", "bias"} | {"vit": {"cls_token", "pos_embed"}, "avg": {"pos_embed"}}.get(name, set())


@each_model
@pytest.mark.parametrize(("optimiser", "kind"), [("adamw", torch.optim.AdamW), ("sgd", torch.optim.SGD)])
def test_the_others_take_everything_and_the_same_matrices_decay(name, optimiser, kind):
    model = MODELS[name][0]()
    _, _, (inside, edges, free) = groups(model, "muon")
    made, _, found = groups(model, optimiser)
    assert type(made) is kind and found == [inside | edges, free]
    assert [g["weight_decay"] for g in made.param_groups] == [0.3, 0.0]
