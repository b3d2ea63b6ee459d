"""Parameters of section 6: Tables 2 and 3."""

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from attnrate.linear.targets import NAMES
from attnrate.schemas.check import Count, Head, Muon, Positive, Rate, Section, Seed, Seeds, unique


class Target(Section):
    tau: Annotated[Count, Field(ge=21, le=256)] = Field(
        description="sequence length τ; the orderings move 10 at each end"
    )
    kernel_seed: Seed = Field(description="seed of the first kernel ρ ~ U[0, 1] of Table 3")
    filter_seed: Seed = Field(description="seed of the first mixing filters θ")
    draws: Annotated[Count, Field(le=100)] = Field(description="draws of kernels and filters, each a replicate")


Names = Annotated[list[str], Field(min_length=1), AfterValidator(unique)]


class Cells(Section):
    names: Names = Field(description="targets of the Transformer, kernel/alteration/filter")
    seeds: Seeds = Field(description="seeds of the Transformer")


class Rnn(Section):
    seeds: Seeds = Field(description="seeds of the RNN")
    steps: Count = Field(description="Adam steps of the RNN on the exact error")
    sample_steps: Count = Field(description="Adam steps of the RNN on samples")
    batch: Count = Field(description="sequences in a batch of samples")
    lr: Rate = Field(description="peak learning rate of the RNN")


class Model(Section):
    n: Annotated[Count, Field(ge=5, le=1024)] = Field(
        description="dimension n = d_v of f̂'s output and of the positions"
    )
    width: Annotated[Count, Field(ge=5, le=4096)] = Field(description="width of f̂ and F̂; the hand-set network needs 5")


class Train(Section):
    steps: Count = Field(description="steps of the Transformer")
    batch: Count = Field(description="sequences in a batch")
    gate: bool = Field(description="also measure what half the steps give, for a fifth more time")


class Mixing(Section):
    mh: Head = Field(description="head size m_h of the Transformer on mixed targets")
    seeds: Seeds = Field(description="seeds of the Transformer, a filter each")
    bare: Names = Field(description="targets of the Transformer as it is")
    filtered: Names = Field(description="targets of the Transformer with a learned filter in front")
    train: Train


class Plain(Section):
    lr: Rate = Field(description="learning rate")


class Centred(Section):
    lr: Rate = Field(description="peak learning rate of Adam")
    muon: Muon = Field(description="peak learning rate of Muon, on matrices; null: Adam on them too")
    warmup: Count = Field(description="warm-up steps")
    gain: Positive = Field(description="factor on W_Q and W_K at the start")


class Recipes(Section):
    centred: Centred
    plain: Plain


class Eval(Section):
    size: Count = Field(description="fresh sequences for the test error")
    seed: Seed = Field(description="seed of the test sequences")


class Linear(Section):
    target: Target
    cells: Cells
    rnn: Rnn
    model: Model
    train: Train
    mixing: Mixing
    recipes: Recipes
    eval: Eval

    @model_validator(mode="after")
    def _known(self):
        lists = {"cells.names": self.cells.names, "mixing.bare": self.mixing.bare}
        lists["mixing.filtered"] = self.mixing.filtered
        for where, names in lists.items():
            for name in names:
                if name not in NAMES:
                    raise ValueError(f"linear.{where} has {name!r}; known are {', '.join(NAMES)}")
            if "exp/original" not in names:
                raise ValueError(f"linear.{where} should have exp/original, which the others are compared with")
        draws = self.target.draws
        for where, seeds in (("cells", self.cells), ("rnn", self.rnn), ("mixing", self.mixing)):
            if len(seeds.seeds) > draws:
                raise ValueError(
                    f"linear.{where}.seeds has {len(seeds.seeds)} seeds, but linear.target.draws = {draws} leaves "
                    "some without a kernel and a filter"
                )
        for where, train in (("linear.train", self.train), ("linear.mixing.train", self.mixing.train)):
            if self.recipes.centred.warmup >= train.steps:
                raise ValueError(
                    f"linear.recipes.centred.warmup = {self.recipes.centred.warmup} should be less than "
                    f"{where}.steps = {train.steps}"
                )
        return self
