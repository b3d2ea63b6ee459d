"""Parameters of section 5.1: Figure 1 and the estimators behind it."""

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from attnrate.core.config import Alpha, Count, Head, Heads, Positive, Rank, Rate, Section, Seed, Seeds, unique


class Rates(Section):
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
    n: Annotated[Count, Field(ge=3, le=1024)] = Field(description="dimension n = d_v of f̂'s output")
    width: Annotated[Count, Field(ge=4, le=4096)] = Field(description="width m_FF of f̂ and F̂")
    mh: Heads = Field(description="head sizes of the constructive and free-kernel estimators")
    seeds: Seeds = Field(description="seeds of every estimator")
    train_mh: Heads = Field(description="head sizes of the paper and trained estimators")
    steps: Annotated[Count, Field(le=10**7)] = Field(description="Adam steps of the paper and trained estimators")
    batch: Count = Field(description="sequences in a training batch")
    grid: Annotated[Count, Field(ge=2)] = Field(description="points of the randomly shifted grid that inputs fall on")
    queries: Count = Field(description="outputs t of each sequence that enter the loss")
    paper_lr: Rate = Field(description="learning rate of the paper recipe")
    trained_lr: Rate = Field(description="peak learning rate of the trained recipe")
    trained_slope: Positive = Field(description="slope of f̂'s first layer in the trained recipe")
    warmup: Annotated[Count, Field()] = Field(description="warm-up steps of the trained recipe")
    free_steps: Count = Field(description="Adam steps of the free kernel")
    free_batch: Count = Field(description="sequences in a free-kernel batch")
    free_lr: Rate = Field(description="learning rate of the free kernel")
    free_modes: Annotated[Count, Field(le=256)] = Field(description="highest frequency in the free kernel")
    widths: Annotated[list[Annotated[Count, Field(ge=4, le=4096)]], Field(min_length=2), AfterValidator(unique)] = (
        Field(description="widths m_FF of the sweep of the second term of eq. (17)")
    )
    width_rank: Annotated[Head, Field(le=64)] = Field(description="rank r = m_h of the sweep of m_FF")

    @model_validator(mode="after")
    def _fits(self):
        if len({f"{alpha:g}" for alpha in self.alphas}) < len(self.alphas):
            raise ValueError(f"rates.alphas = {self.alphas} should differ in their first six digits")
        largest = max(*self.mh, self.width_rank)
        if largest + 1 > self.n:
            raise ValueError(f"rates.mh and rates.width_rank up to {largest} need rates.n of at least {largest + 1}")
        if 2 * min(self.mh) + 1 > self.n:
            raise ValueError(
                f"rates.mh from {min(self.mh)} on leaves the free kernel nothing: it needs 2 m_h + 1 ≤ rates.n = {self.n}"
            )
        if max(self.train_mh) > 10 * self.n:
            raise ValueError(f"rates.train_mh up to {max(self.train_mh)} should be at most 10 times rates.n = {self.n}")
        if self.queries > self.tau:
            raise ValueError(f"rates.queries = {self.queries} should be at most rates.tau = {self.tau}")
        if self.warmup >= self.steps:
            raise ValueError(f"rates.warmup = {self.warmup} should be less than rates.steps = {self.steps}")
        if max(self.mh) > self.free_modes or self.width_rank > self.free_modes:
            raise ValueError(
                f"rates.free_modes = {self.free_modes} should be at least the largest rates.mh and rates.width_rank"
            )
        return self
