"""Parameters of section 5.1: Figure 1 and the estimators behind it."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from attnrate.schemas.check import Alpha, Count, Head, Heads, Positive, Rank, Rate, Section, Seed, Seeds, unique


class Target(Section):
    alphas: Annotated[list[Alpha], Field(min_length=1), AfterValidator(unique)] = Field(
        description="decay exponents α of σ_i = i^-α"
    )
    ranks: Annotated[list[Rank], Field(min_length=1), AfterValidator(unique)] = Field(
        description="ranks r of ρ; inf is cut at `terms`"
    )
    terms: Annotated[Count, Field(ge=2, le=4096)] = Field(description="number of terms R that stands for r = ∞")
    tau: Annotated[Count, Field(ge=2, le=512)] = Field(description="sequence length τ")
    eval_size: Count = Field(description="sequences in the evaluation set")
    eval_seed: Seed = Field(description="seed of the evaluation set")


class Model(Section):
    n: Annotated[Count, Field(ge=3, le=1024)] = Field(description="dimension n = d_v of f̂'s output")
    width: Annotated[Count, Field(ge=4, le=4096)] = Field(description="width m_FF of f̂ and F̂")


class Constructive(Section):
    mh: Heads = Field(description="head sizes of the proof's network and of the POD truncation")
    widths: Annotated[list[Annotated[Count, Field(ge=4, le=4096)]], Field(min_length=2), AfterValidator(unique)] = (
        Field(description="widths m_FF of the sweep of the second term of eq. (17)")
    )
    width_rank: Annotated[Head, Field(le=64)] = Field(description="rank r = m_h of the sweep of m_FF")


class FreeKernel(Section):
    mh: Heads = Field(description="head sizes of the free kernel, as far as 2 m_h + 1 ≤ n")
    seeds: Seeds = Field(description="seeds of the free kernel")
    steps: Count = Field(description="Adam steps of the free kernel")
    batch: Count = Field(description="sequences in a free-kernel batch")
    lr: Rate = Field(description="learning rate of the free kernel")
    modes: Annotated[Count, Field(le=256)] = Field(description="highest frequency in the free kernel")


class Train(Section):
    mh: Heads = Field(description="head sizes of the paper and trained estimators")
    seeds: Seeds = Field(description="seeds of the paper and trained estimators")
    steps: Annotated[Count, Field(le=10**7)] = Field(description="Adam steps of the paper and trained estimators")
    batch: Count = Field(description="sequences in a training batch")
    grid: Annotated[Count, Field(ge=2)] = Field(description="points of the randomly shifted grid that inputs fall on")
    queries: Count = Field(description="outputs t of each sequence that enter the loss")


class Recipe(Section):
    lr: Rate = Field(description="peak learning rate")
    schedule: Literal["constant", "cosine"] = Field(description="learning rate after the warm-up")
    warmup: Annotated[int, Field(ge=0, le=10**9)] = Field(description="warm-up steps, of the cosine schedule")
    slope: Positive | None = Field(description="of f̂'s first layer, knots over [0, 1]; null: PyTorch's start")


class Recipes(Section):
    paper: Recipe
    trained: Recipe


class Rates(Section):
    target: Target
    model: Model
    constructive: Constructive
    free_kernel: FreeKernel
    train: Train
    recipes: Recipes

    @model_validator(mode="after")
    def _fits(self):
        target, n, built, free, train = self.target, self.model.n, self.constructive, self.free_kernel, self.train
        if len({f"{alpha:g}" for alpha in target.alphas}) < len(target.alphas):
            raise ValueError(f"rates.target.alphas = {target.alphas} should differ in their first six digits")
        largest = max(*built.mh, built.width_rank)
        if largest + 1 > n:
            raise ValueError(
                f"rates.constructive.mh and width_rank up to {largest} need rates.model.n of at least {largest + 1}"
            )
        if 2 * min(free.mh) + 1 > n:
            raise ValueError(
                f"rates.free_kernel.mh from {min(free.mh)} on leaves nothing: it needs 2 m_h + 1 ≤ rates.model.n = {n}"
            )
        if max(train.mh) > 10 * n:
            raise ValueError(f"rates.train.mh up to {max(train.mh)} should be at most 10 times rates.model.n = {n}")
        if train.queries > target.tau:
            raise ValueError(f"rates.train.queries = {train.queries} should be at most rates.target.tau = {target.tau}")
        for name, recipe in self.recipes:
            if recipe.warmup >= train.steps:
                raise ValueError(
                    f"rates.recipes.{name}.warmup = {recipe.warmup} should be less than "
                    f"rates.train.steps = {train.steps}"
                )
        if max(free.mh) > free.modes:
            raise ValueError(f"rates.free_kernel.modes = {free.modes} should be at least the largest of its mh")
        return self
