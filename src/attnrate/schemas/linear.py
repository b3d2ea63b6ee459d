"""Parameters of section 6: Tables 2 and 3."""

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from attnrate.linear.targets import NAMES
from attnrate.schemas.check import Count, Muon, Positive, Rate, Section, Seed, Seeds, unique


class Target(Section):
    tau: Annotated[Count, Field(ge=21, le=256)] = Field(
        description="sequence length τ; the orderings move 10 at each end"
    )
    kernel_seed: Seed = Field(description="seed of the kernel ρ ~ U[0, 1] of Table 3")
    filter_seed: Seed = Field(description="seed of the mixing filters θ")


class Cells(Section):
    names: Annotated[list[str], Field(min_length=1), AfterValidator(unique)] = Field(
        description="targets of the Transformer, kernel/alteration/filter"
    )
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
    learned_filter: Centred = Field(alias="learned-filter")


class Eval(Section):
    size: Count = Field(description="fresh sequences for the test error")
    seed: Seed = Field(description="seed of the test sequences")


class Linear(Section):
    target: Target
    cells: Cells
    rnn: Rnn
    model: Model
    train: Train
    recipes: Recipes
    eval: Eval

    @model_validator(mode="after")
    def _known(self):
        cells = self.cells.names
        for cell in cells:
            if cell not in NAMES:
                raise ValueError(f"linear.cells.names has {cell!r}; known are {', '.join(NAMES)}")
        if "exp/original" not in cells or not any(c.count("/") == 2 for c in cells):
            raise ValueError("linear.cells.names should have exp/original and at least one mixed target")
        for name, recipe in (("centred", self.recipes.centred), ("learned-filter", self.recipes.learned_filter)):
            if recipe.warmup >= self.train.steps:
                raise ValueError(
                    f"linear.recipes.{name}.warmup = {recipe.warmup} should be less than "
                    f"linear.train.steps = {self.train.steps}"
                )
        return self
