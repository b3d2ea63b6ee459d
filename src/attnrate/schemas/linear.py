"""Parameters of section 6: Tables 2 and 3."""

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from attnrate.core.config import Count, Positive, Rate, Section, Seed, Seeds, unique


class Linear(Section):
    tau: Annotated[Count, Field(ge=21, le=256)] = Field(
        description="sequence length τ; the orderings move 10 at each end"
    )
    kernel_seed: Seed = Field(description="seed of the kernel ρ ~ U[0, 1] of Table 3")
    filter_seed: Seed = Field(description="seed of the mixing filters θ")
    seeds: Seeds = Field(description="seeds of every model")
    rnn_steps: Count = Field(description="Adam steps of the RNN on the exact error")
    rnn_sample_steps: Count = Field(description="Adam steps of the RNN on samples")
    rnn_lr: Rate = Field(description="peak learning rate of the RNN")
    cells: Annotated[list[str], Field(min_length=1), AfterValidator(unique)] = Field(
        description="targets of the Transformer, kernel/alteration/filter"
    )
    n: Annotated[Count, Field(ge=1, le=1024)] = Field(
        description="dimension n = d_v of f̂'s output and of the positions"
    )
    width: Annotated[Count, Field(ge=1, le=4096)] = Field(description="width of f̂ and F̂")
    steps: Count = Field(description="Adam steps of the Transformer")
    batch: Count = Field(description="sequences in a batch")
    lr: Rate = Field(description="peak learning rate of the Transformer")
    plain_lr: Rate = Field(description="learning rate of the plain recipe")
    warmup: Count = Field(description="warm-up steps of the Transformer")
    gain: Positive = Field(description="factor on W_Q and W_K at the start")
    eval_size: Count = Field(description="fresh sequences for the test error")
    eval_seed: Seed = Field(description="seed of the test sequences")

    @model_validator(mode="after")
    def _known(self):
        from attnrate.targets.linear import NAMES  # the schema itself needs no arrays

        for cell in self.cells:
            if cell not in NAMES:
                raise ValueError(f"linear.cells names {cell!r}; known are {', '.join(NAMES)}")
        if "exp/original" not in self.cells or not any(c.count("/") == 2 for c in self.cells):
            raise ValueError("linear.cells should name exp/original and at least one mixed target")
        if self.warmup >= self.steps:
            raise ValueError(f"linear.warmup = {self.warmup} should be less than linear.steps = {self.steps}")
        return self
