"""Parameters of sections 5.2 and 6.1 on CIFAR10: Figures 2 and 3, Table 1."""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from attnrate.core.config import Count, Fraction, Positive, Rate, Section, Seed, Seeds, number, unique

Reading = Literal["qk", "head", "width"]
Plain = Annotated[int, Field(strict=True, ge=1, le=256)]  # dvc.yaml puts it into commands and names as it is written
TOY_IMAGES = 640  # what the stand-in holds to train on


def _start(value: str) -> str:
    if value != "scratch" and not re.fullmatch(r"vit_[A-Za-z0-9_.]+", value):
        raise ValueError("should be scratch or the name of a timm model, such as vit_base_patch16_224.augreg_in21k")
    return value


Start = Annotated[str, AfterValidator(_start)]


class Vit(Section):
    data_key = "data"

    data: Literal["cifar10", "toy"] = Field(description="cifar10, or a synthetic stand-in for tests")
    data_folder: Path | None = Field(description="a copy of CIFAR10 on this machine; null downloads it")
    readings: Annotated[list[Reading], Field(min_length=1), AfterValidator(unique)] = Field(
        description="readings of m_h in the sweep"
    )
    mh_sweep: Annotated[list[Plain], Field(min_length=1), AfterValidator(unique)] = Field(
        description="head sizes of Figure 3, beside main_mh"
    )
    seeds: Seeds = Field(description="seeds of the sweep")
    start: Start = Field(description="what the sweep starts from; a timm model is cut to m_h by an SVD")
    main_mh: Plain = Field(description="head size of the main model: Figure 2, Table 1")
    main_start: Start = Field(description="what the main model starts from")
    table_seeds: Seeds = Field(description="seeds of the main model and of Table 1's pair")
    extra_seeds: Seeds = Field(description="seeds of Table 1's other rows")
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
    train_images: Annotated[Count, Field(le=50000)] = Field(description="images to train on")
    measure_images: Annotated[Count, Field(le=50000)] = Field(
        description="of them, the first ones, on which the final training loss is measured; the same for every model"
    )
    test_images: Annotated[Count, Field(le=10000)] = Field(description="images to test on")
    epochs: Count = Field(description="passes over the training images")
    tune_epochs: Count = Field(description="passes of a model that starts from trained weights")
    max_steps: Count | None = Field(description="stop each training early; null: never (2 in a rehearsal)")
    batch: Count = Field(description="images in an optimiser step")
    accumulate: Count = Field(description="parts that a batch is split into, to fit memory")
    optimiser: Literal["adamw", "sgd"] = Field(description="optimiser")
    lr: Rate = Field(description="peak learning rate")
    tune_optimiser: Literal["adamw", "sgd"] = Field(description="optimiser of such a model")
    tune_lr: Rate = Field(description="peak learning rate of such a model")
    schedule: Literal["constant", "cosine", "one-cycle", "linear", "inverse-sqrt"] = Field(description="learning rate")
    warmup: Fraction = Field(description="share of the steps that the learning rate rises for")
    weight_decay: Annotated[float, BeforeValidator(number), Field(ge=0, le=10)] = Field(description="weight decay")
    tune_weight_decay: Annotated[float, BeforeValidator(number), Field(ge=0, le=10)] = Field(
        description="weight decay of such a model"
    )
    smoothing: Fraction = Field(description="label smoothing")
    clip: Positive = Field(description="largest gradient norm")
    checkpoint: Count = Field(description="steps between checkpoints")
    permutation_seed: Seed = Field(description="seed of the random permutation of patches")
    spectra_images: Annotated[Count, Field(ge=2, le=10000)] = Field(description="test images whose spectra are taken")
    normalisation: Literal["tokens", "largest", "none"] = Field(
        description="singular values over the number of tokens, over the largest, or as they are"
    )

    @model_validator(mode="after")
    def _fits(self):
        if self.image_size % self.patch:
            raise ValueError(f"vit.patch = {self.patch} should divide vit.image_size = {self.image_size}")
        if self.image_size < 4 * self.patch:
            raise ValueError("vit.image_size should hold at least 16 patches, of which the first 10 move")
        if self.width % self.heads:
            raise ValueError(f"vit.heads = {self.heads} should divide vit.width = {self.width}")
        full = self.width // self.heads
        if max(*self.mh_sweep, self.main_mh) > full:
            raise ValueError(f"vit.mh_sweep and vit.main_mh should be at most vit.width / vit.heads = {full}")
        narrowest = self.heads * min(self.mh_sweep) if "width" in self.readings else self.width
        if int(narrowest * self.mlp_ratio) < 1:
            raise ValueError(f"vit.mlp_ratio = {self.mlp_ratio} leaves no unit beside a width of {narrowest}")
        images = min(self.train_images, TOY_IMAGES) if self.data == "toy" else self.train_images
        if self.batch > images:
            raise ValueError(
                f"vit.batch = {self.batch} should be at most the {images} images that vit.train_images and vit.data give"
            )
        if self.accumulate > self.batch:
            raise ValueError(f"vit.accumulate = {self.accumulate} should be at most vit.batch = {self.batch}")
        if self.start != "scratch" and self.readings != ["qk"]:
            raise ValueError(
                "vit.start should be scratch unless vit.readings is qk alone: only its heads can be cut by an SVD"
            )
        if self.pool != "token" and {self.start, self.main_start} != {"scratch"}:
            raise ValueError(
                "vit.pool should be token where vit.start or vit.main_start is a timm model, which reads that"
            )
        if not set(self.extra_seeds) <= set(self.table_seeds):
            raise ValueError("vit.extra_seeds should be among vit.table_seeds, whose trained models they start from")
        return self
