"""Parameters of section 5.1: Figure 1 and the estimators behind it."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from attnrate.schemas.check import Alpha, Count, Head, Heads, Muon, Positive, Rank, Rate, Section, Seed, Seeds, unique


def _pairing(value: str) -> str:
    if not re.fullmatch("same|dyadic-(0|[1-9][0-9]{0,8})", value):
        raise ValueError("should be same, or dyadic- and the seed of a draw, such as dyadic-0")
    return value


def _rising(values: list[int]) -> list[int]:
    if values != sorted(set(values)):
        raise ValueError("should rise")
    return values


def _block_end(m: int) -> int:
    """The last number of the dyadic block {1}, {2, 3}, {4 … 7}, … that holds m."""
    return 2 ** m.bit_length() - 1


Alphas = Annotated[list[Alpha], Field(min_length=1), AfterValidator(unique)]
Pairings = Annotated[list[Annotated[str, AfterValidator(_pairing)]], Field(min_length=1), AfterValidator(unique)]


class Target(Section):
    pairings: Pairings = Field(
        description="ψ_i = φ_p(i) with p the identity (same) or drawn inside dyadic blocks (dyadic- and a seed)"
    )
    alphas: Alphas = Field(description="decay exponents α of σ_i = i^-α")
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


class Exact(Section):
    pairing_seed: Seed = Field(description="seed of the first draw of the pairing")
    draws: Annotated[Count, Field(le=1000)] = Field(description="draws of the pairing, each a replicate")
    mh: Annotated[list[Annotated[Count, Field(le=4096)]], Field(min_length=1), AfterValidator(_rising)] = Field(
        description="head sizes of the POD truncation at r = ∞"
    )
    terms: Annotated[Count, Field(ge=2, le=65536)] = Field(description="number of terms R that stands for r = ∞")
    size: Count = Field(description="sequences that its error is measured on")
    taus: Annotated[list[Annotated[Count, Field(ge=2, le=1024)]], Field(min_length=1), AfterValidator(unique)] = Field(
        description="lengths τ of the inputs of sampled matrices"
    )
    inputs: Count = Field(description="inputs that a sampled spectrum is averaged over")


class Train(Section):
    seeds: Seeds = Field(description="seeds of the paper and trained estimators")
    points: Count = Field(description="uniform points of a step, of which each sequence takes τ different ones")
    queries: Count = Field(description="outputs t of each sequence that enter the loss")


class Recipe(Section):
    pairings: Pairings = Field(description="pairings it is trained on")
    alphas: Alphas = Field(description="decay exponents it is trained on")
    mh: Heads = Field(description="head sizes it is trained with")
    steps: Annotated[Count, Field(le=10**7)] = Field(description="training steps")
    batch: Count = Field(description="sequences in a batch")
    lr: Rate = Field(description="peak learning rate of Adam")
    muon: Muon = Field(description="peak learning rate of Muon, on matrices; null: Adam on them too")
    schedule: Literal["constant", "cosine"] = Field(description="learning rate after the warm-up")
    warmup: Annotated[int, Field(ge=0, le=10**9)] = Field(description="warm-up steps")
    hats: Positive | None = Field(description="height of the hats that f̂ starts from; null: PyTorch's start")


class Recipes(Section):
    paper: Recipe
    trained: Recipe


class Rates(Section):
    target: Target
    model: Model
    constructive: Constructive
    free_kernel: FreeKernel
    exact: Exact
    train: Train
    recipes: Recipes

    @model_validator(mode="after")
    def _fits(self):
        target, n, built, free, train = self.target, self.model.n, self.constructive, self.free_kernel, self.train
        if len({f"{alpha:g}" for alpha in target.alphas}) < len(target.alphas):
            raise ValueError(f"rates.target.alphas = {target.alphas} should differ in their first six digits")
        if max(finite := [r for r in target.ranks if r != "inf"], default=0) > target.terms:
            raise ValueError(
                f"rates.target.ranks up to {max(finite)} should be at most rates.target.terms = {target.terms}"
            )
        if max(self.exact.mh) >= self.exact.terms:
            raise ValueError(f"rates.exact.mh should be less than rates.exact.terms = {self.exact.terms}")
        same, largest = target.pairings == ["same"], max(built.mh)
        # Frequencies beyond m_h: as many as the block of m_h has, and at most one for each ψ of that block.
        beyond = 0 if same else min(largest - _block_end(largest) // 2, _block_end(largest) - largest)
        need = max(largest + beyond, built.width_rank) + 1
        if need > n:
            raise ValueError(
                f"rates.constructive.mh up to {largest} and width_rank = {built.width_rank} need rates.model.n "
                f"of at least {need}"
            )
        fitting = [mh for mh in free.mh if 2 * mh + 1 <= n]
        if not fitting:
            raise ValueError(
                f"rates.free_kernel.mh from {min(free.mh)} on leaves nothing: it needs 2 m_h + 1 ≤ rates.model.n = {n}"
            )
        highest = max(fitting) if same else _block_end(max(fitting))
        if highest > free.modes:
            raise ValueError(
                f"rates.free_kernel.modes = {free.modes} should be at least {highest}, the highest frequency "
                f"that ψ may have at rates.free_kernel.mh = {max(fitting)}"
            )
        if train.points < target.tau:
            raise ValueError(f"rates.train.points = {train.points} should be at least rates.target.tau = {target.tau}")
        if train.queries > target.tau:
            raise ValueError(f"rates.train.queries = {train.queries} should be at most rates.target.tau = {target.tau}")
        for name, recipe in self.recipes:
            if max(recipe.mh) > 10 * n:
                raise ValueError(
                    f"rates.recipes.{name}.mh up to {max(recipe.mh)} should be at most 10 times rates.model.n = {n}"
                )
            if not set(recipe.alphas) <= set(target.alphas):
                raise ValueError(
                    f"rates.recipes.{name}.alphas = {recipe.alphas} should be among rates.target.alphas = "
                    f"{target.alphas}"
                )
            if not set(recipe.pairings) <= set(target.pairings):
                raise ValueError(
                    f"rates.recipes.{name}.pairings = {recipe.pairings} should be among rates.target.pairings = "
                    f"{target.pairings}"
                )
            if recipe.warmup >= recipe.steps:
                raise ValueError(
                    f"rates.recipes.{name}.warmup = {recipe.warmup} should be less than its steps = {recipe.steps}"
                )
        return self
