"""Every value is checked against a declared type and range as it is written, and unknown keys are errors."""

import re
import reprlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from attnrate.core.errors import UserError
from attnrate.large.parts import holds


class Section(BaseModel):
    """A group of parameters. Strict: a stage reads params.yaml as it is, so that nothing may be put right here."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def unique(values: list) -> list:
    if len(set(values)) < len(values):
        raise ValueError("should not name a value twice")
    return values


def _rank(value: Any) -> int | str:
    if value == "inf" or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 64):
        return value
    raise ValueError("should be a whole number from 1 to 64, or inf")


def _launch(value: str) -> str:
    words = r"( [\w./:=,-]+)*"
    if not re.fullmatch(rf"(srun{words} )?(python|(accelerate launch|torchrun){words})", value):
        raise ValueError(
            "should be python, or accelerate launch or torchrun with their options; srun may stand before it"
        )
    return value


def _part(value: str) -> str:
    if not re.fullmatch(r"all|([a-z0-9-]+_)*seed\d+", value):
        raise ValueError("should be all, a seed such as seed0, or a run such as permuted_seed0")
    return value


def split(parts: list[str], runs: Iterable[str], key: str) -> None:
    """Each run is in one part, and no part is empty."""
    found = [[part for part in parts if holds(part, run)] for run in runs]
    if any(len(among) != 1 for among in found) or {part for among in found for part in among} != set(parts):
        raise ValueError(f"{key} = {parts} should hold each of {', '.join(runs)} once, and nothing else")


Count = Annotated[int, Field(ge=1, le=10**9)]
Seed = Annotated[int, Field(ge=0, lt=2**31)]
Head = Annotated[int, Field(ge=1, le=256)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Rate = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Muon = Rate | None
Fraction = Annotated[float, Field(ge=0, lt=1)]
Alpha = Annotated[float, Field(gt=0.5, le=10, allow_inf_nan=False)]
Rank = Annotated[int | str, BeforeValidator(_rank)]
Seeds = Annotated[list[Seed], Field(min_length=1), AfterValidator(unique)]
Parts = Annotated[list[Annotated[str, AfterValidator(_part)]], Field(min_length=1), AfterValidator(unique)]
Heads = Annotated[list[Head], Field(min_length=1), AfterValidator(unique)]
Schedule = Literal["constant", "cosine", "one-cycle", "linear", "inverse-sqrt"]
Folder = Annotated[str, Field(min_length=1, pattern=r"^[^\x00]+$")] | None


class Shared(Section):
    """The scalars at the top of params.yaml."""

    profile: Literal["laptop", "smoke", "desk", "paper"] = Field(description="name, printed beside every result")
    threads: Annotated[int, Field(ge=1, le=1024)] = Field(
        description="CPU threads of a training that is alone in its stage; others run side by side, one thread each"
    )
    device: Literal["auto", "cuda", "cpu"] = Field(
        description="auto: a GPU if there is one; cuda: nothing is trained without one; cpu"
    )
    launch: Annotated[str, AfterValidator(_launch)] = Field(
        description="what starts a training on CIFAR10 or text: python, accelerate launch or torchrun, maybe after srun"
    )
    live: Literal["none", "dvclive", "tensorboard", "wandb"] = Field(
        description="where such a training, if it is long, tells how it goes"
    )
    mh: Head = Field(description="head size m_h of Tables 2 and 3 and Figures 4 to 6")


def check(model: type[BaseModel], content: Mapping, path: str | Path) -> Any:
    """content as a model, or a UserError with a line for each wrong key: its name, its value, what is allowed."""
    try:
        return model.model_validate(content)
    except ValidationError as e:
        raise UserError("\n".join(_explain(model, error, path) for error in e.errors())) from None


_short = reprlib.Repr()
_short.maxlevel, _short.maxlist, _short.maxdict, _short.maxstring, _short.maxother = 2, 20, 20, 200, 200


def _shown(value: Any) -> str:
    try:
        return _short.repr(value)
    except ValueError:  # Python prints no integer of more than 4,300 digits
        return "a number of thousands of digits"


def _explain(model: type[BaseModel], error: Mapping, path: str | Path) -> str:
    key = ".".join(repr(str(part))[1:-1] for part in error["loc"])
    field, owner = None, model
    for part in error["loc"]:
        if isinstance(owner, type) and issubclass(owner, BaseModel):
            by_name = {(f.alias or name): f for name, f in owner.model_fields.items()}
            if part in by_name:
                field = by_name[part]
                owner = field.annotation
    about = f" ({field.description})" if field is not None and field.description else ""
    if error["type"] == "missing":
        return f"{path}: {key} is missing{about}"
    if error["type"] == "extra_forbidden":
        return f"{path}: {key} is not a known parameter"
    rule = error["msg"].removeprefix("Value error, ").removeprefix("Input ")
    if error["type"] == "value_error" and isinstance(owner, type) and issubclass(owner, BaseModel):
        return f"{path}: {rule}"  # of a group: the rule names its keys
    return f"{path}: {key} = {_shown(error['input'])} is not allowed: {rule}{about}"
