"""Parameters of appendix B.1: Figures 4, 5 and 6."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from attnrate.schemas.check import Count, Muon, Positive, Rate, Section, Seed, Seeds, unique


class Model(Section):
    n: Annotated[Count, Field(ge=2, le=1024)] = Field(description="dimension n = d_v of f̂'s output")
    width: Annotated[Count, Field(ge=4, le=4096)] = Field(description="width m_FF of f̂ and F̂")


class Train(Section):
    seeds: Seeds = Field(description="seeds of every variant")
    batch: Annotated[Count, Field(le=10**6)] = Field(description="sequences in a training batch")
    lr: Rate = Field(description="peak learning rate of Adam")
    warmup: Count = Field(description="warm-up steps")
    gain: Annotated[Positive, Field(le=100)] = Field(description="factor on W_Q and W_K at the start")
    gate: bool = Field(description="train half the steps too, which must not change a verdict")


class Task(Section):
    steps: Annotated[Count, Field(le=10**7)] = Field(description="training steps")
    muon: Muon = Field(description="peak learning rate of Muon, on matrices; null: Adam on them too")


class Nearest(Task):
    variants: list[Literal["plain"]] = Field(min_length=1, max_length=1, description="nothing is added to the paper")


class Mass(Task):
    variants: Annotated[
        list[Literal["segment-id", "position-only", "untied"]], Field(min_length=1), AfterValidator(unique)
    ] = Field(description="with segment id, with positions alone, with segment id and untied start")
    token_weight: Annotated[Positive, Field(le=1000)] = Field(
        description="weight of a prediction token in the loss; points weigh 1"
    )


class Selection(Task):
    variants: Annotated[list[Literal["one-hot", "raw-index"]], Field(min_length=1), AfterValidator(unique)] = Field(
        description="one-hot indices, or plain numbers as in the paper"
    )


class Tasks(Section):
    nearest: Nearest
    mass: Mass
    selection: Selection


class Eval(Section):
    size: Annotated[Count, Field(ge=2, le=10**6)] = Field(description="fresh inputs behind every measure")
    seed: Seed = Field(description="seed of the fresh inputs and of the input in the figures")


class Examples(Section):
    model: Model
    train: Train
    tasks: Tasks
    eval: Eval

    @model_validator(mode="after")
    def _fits(self):
        if self.tasks.mass.variants[0] != "segment-id" or self.tasks.selection.variants[0] != "one-hot":
            raise ValueError(
                "examples.tasks.mass.variants should begin with segment-id and examples.tasks.selection.variants with "
                "one-hot: the figures show the first variant"
            )
        for name, task in self.tasks:
            if self.train.warmup >= task.steps:
                raise ValueError(
                    f"examples.train.warmup = {self.train.warmup} should be less than "
                    f"examples.tasks.{name}.steps = {task.steps}"
                )
        return self
