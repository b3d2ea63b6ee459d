"""Parameters of what goes beyond the paper."""

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from attnrate.schemas.check import Count, Head, Muon, Positive, Rate, Section, Seed, Seeds, unique
from attnrate.schemas.linear import Train


def warm(own, where: str) -> None:
    if own.warmup >= own.steps:
        raise ValueError(f"beyond.{where}.warmup = {own.warmup} should be less than beyond.{where}.steps = {own.steps}")


class Depth(Section):
    alpha: Annotated[float, Field(ge=0, le=10)] = Field(description="decay of the coupling's singular values, i^-α")
    rank: Annotated[Count, Field(le=16)] = Field(description="rank r of the coupling")
    tau: Annotated[Count, Field(ge=3, le=64)] = Field(description="sequence length τ")
    mh: Head = Field(description="head size m_h of every layer")
    n: Annotated[Count, Field(le=1024)] = Field(description="dimension n = d_v, and of the positions")
    width: Annotated[Count, Field(le=1024)] = Field(description="width m_FF of one layer with a full F̂")
    seeds: Seeds = Field(description="seeds of each model and order")
    permutation_seed: Seed = Field(description="seed of the random order")
    steps: Count = Field(description="steps of Muon")
    batch: Count = Field(description="sequences in a batch")
    lr: Rate = Field(description="peak learning rate of Adam")
    muon: Muon = Field(description="peak learning rate of Muon, on matrices; null: Adam on them too")
    warmup: Count = Field(description="warm-up steps")
    gain: Positive = Field(description="factor on W_Q and W_K of the first of two layers at the start")
    eval_size: Count = Field(description="fresh sequences for the test error")
    eval_seed: Seed = Field(description="seed of the test sequences")

    @model_validator(mode="after")
    def _warm(self):
        warm(self, "depth")
        return self


class Rnn(Section):
    steps: Count = Field(description="Adam steps on the exact error")
    lr: Rate = Field(description="peak learning rate")


Share = Annotated[float, Field(ge=0, le=1)]


class Filters(Section):
    shares: Annotated[list[Share], Field(min_length=2)] = Field(description="negative mass ν of each filter's kernel")
    filter_seed: Seed = Field(description="seed of the first filter that is looked at")
    seed: Seed = Field(description="seed of the first training; each filter has the next")
    mh: Head = Field(description="head size m_h")
    train: Train
    rnn: Rnn

    @model_validator(mode="after")
    def _halves(self):
        if len(self.shares) % 2 or self.shares != sorted(self.shares):
            raise ValueError("beyond.filters.shares should rise, and be as many small ones as large ones")
        return self


Structure = Annotated[str, Field(pattern=r"^[1-9]\d?x[1-9]\d?$")]
Structures = Annotated[list[Structure], Field(min_length=1), AfterValidator(unique)]
Counts = Annotated[list[Count], Field(min_length=1), AfterValidator(unique)]


class TrainedHeads(Section):
    heads: Counts = Field(description="numbers of heads h that are trained")
    targets: Structures = Field(description="targets that they are trained on")


class Heads(Section):
    budget: Annotated[Count, Field(le=256)] = Field(description="h m_h, the same for every model")
    heads: Counts = Field(description="numbers of heads h, divisors of the budget")
    targets: Structures = Field(description="targets: number of couplings x their rank")
    draws: Seeds = Field(description="draws of the couplings, each a replicate")
    alpha: Annotated[float, Field(ge=0, le=10)] = Field(description="decay of the couplings' singular values, i^-α")
    modes: Annotated[Count, Field(le=256)] = Field(description="highest frequency of an estimator without a network")
    tau: Annotated[Count, Field(ge=2, le=64)] = Field(description="sequence length τ")
    batch: Count = Field(description="sequences in a batch")
    free_steps: Count = Field(description="Adam steps of the estimators without a network")
    free_lr: Rate = Field(description="their peak learning rate")
    trained: TrainedHeads
    steps: Count = Field(description="steps of the trained models")
    lr: Rate = Field(description="peak learning rate of Adam")
    muon: Muon = Field(description="peak learning rate of Muon, on matrices; null: Adam on them too")
    warmup: Count = Field(description="warm-up steps")
    hats: Positive = Field(description="height of the hats over [0, 1] that f̂ starts from")
    points: Count = Field(description="points of a step, of which each sequence takes τ different ones")
    queries: Count = Field(description="outputs of a sequence in the loss")
    eval_size: Count = Field(description="fresh sequences for the test error")
    eval_seed: Seed = Field(description="seed of the test sequences")

    @model_validator(mode="after")
    def _fits(self):
        warm(self, "heads")
        if odd := [h for h in (*self.heads, *self.trained.heads) if self.budget % h]:
            raise ValueError(f"beyond.heads has {odd[0]} heads, which do not divide the budget {self.budget}")
        if large := [t for t in (*self.targets, *self.trained.targets) if int(t.split("x")[1]) > self.modes]:
            raise ValueError(f"beyond.heads: target {large[0]} has a rank above modes = {self.modes}")
        if self.points < self.tau or self.queries > self.tau:
            raise ValueError("beyond.heads: points should be at least tau, and queries at most tau")
        return self


class Causal(Section):
    mh: Head = Field(description="head size m_h")
    seeds: Seeds = Field(description="seeds of the masked Transformer")
    train: Train


class Beyond(Section):
    depth: Depth
    filters: Filters
    heads: Heads
    causal: Causal
