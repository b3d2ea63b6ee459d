"""Parameters of appendix B.1: Figures 4, 5 and 6."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from attnrate.core.config import Count, Positive, Rate, Section, Seed, Seeds, unique

Steps = Annotated[Count, Field(le=10**7)]


class Gallery(Section):
    seeds: Seeds = Field(description="seeds of every variant")
    mass_variants: Annotated[
        list[Literal["segment-id", "position-only", "untied"]], Field(min_length=1), AfterValidator(unique)
    ] = Field(description="centre of mass: with segment id, with positions alone, with segment id and untied start")
    selection_variants: Annotated[
        list[Literal["one-hot", "raw-index"]], Field(min_length=1), AfterValidator(unique)
    ] = Field(description="selection: one-hot indices, or plain numbers as in the paper")
    n: Annotated[Count, Field(ge=2, le=1024)] = Field(description="dimension n = d_v of f̂'s output")
    width: Annotated[Count, Field(ge=4, le=4096)] = Field(description="width m_FF of f̂ and F̂")
    nearest_steps: Steps = Field(description="Adam steps of the nearest point")
    mass_steps: Steps = Field(description="Adam steps of the centre of mass")
    selection_steps: Steps = Field(description="Adam steps of the selection")
    batch: Annotated[Count, Field(le=10**6)] = Field(description="sequences in a training batch")
    lr: Rate = Field(description="peak learning rate")
    warmup: Count = Field(description="warm-up steps")
    gain: Annotated[Positive, Field(le=100)] = Field(description="factor on W_Q and W_K at the start")
    token_weight: Annotated[Positive, Field(le=1000)] = Field(
        description="weight of a prediction token in the loss of the centre of mass; points weigh 1"
    )
    eval_size: Annotated[Count, Field(ge=2, le=10**6)] = Field(description="fresh inputs behind every measure")
    eval_seed: Seed = Field(description="seed of the fresh inputs and of the input in the figures")

    @model_validator(mode="after")
    def _fits(self):
        if self.mass_variants[0] != "segment-id" or self.selection_variants[0] != "one-hot":
            raise ValueError(
                "gallery.mass_variants should begin with segment-id and gallery.selection_variants with one-hot: "
                "the figures show the first variant"
            )
        for task in ("nearest", "mass", "selection"):
            steps = getattr(self, f"{task}_steps")
            if self.warmup >= steps:
                raise ValueError(f"gallery.warmup = {self.warmup} should be less than gallery.{task}_steps = {steps}")
        return self
