"""The one reader of YAML. Every value is checked against a declared type and range, and unknown keys are errors.

A stage asks for the keys it declares in dvc.yaml and gets those alone; the `validate` stage checks the whole file.
"""

import math
import re
import reprlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model

from attnrate.core.stage import UserError


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    data_key: ClassVar[str | None] = None  # the parameter that names a data set; without one the data are synthetic


def number(value: Any) -> Any:
    """`-S lr=1e-5` and a hand-written 1e-4 both reach PyYAML as strings; true is not 1."""
    if isinstance(value, bool):
        raise ValueError("should be a number, not true or false")
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


def unique(values: list) -> list:
    if len(set(values)) < len(values):
        raise ValueError("should not name a value twice")
    return values


def _rank(value: Any) -> int | str:
    if value == "inf" or (isinstance(value, float) and math.isinf(value) and value > 0):
        return "inf"
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 64:
        return value
    raise ValueError("should be a whole number from 1 to 64, or inf")


def _launch(value: str) -> str:
    if value != "python" and not re.fullmatch(r"(accelerate launch|torchrun)( [\w./:=-]+)*", value):
        raise ValueError("should be python, or accelerate launch or torchrun with their options")
    return value


Count = Annotated[int, BeforeValidator(number), Field(ge=1, le=10**9)]
Seed = Annotated[int, BeforeValidator(number), Field(ge=0, lt=2**31)]
Head = Annotated[int, BeforeValidator(number), Field(ge=1, le=256)]
Positive = Annotated[float, BeforeValidator(number), Field(gt=0, allow_inf_nan=False)]
Rate = Annotated[float, BeforeValidator(number), Field(gt=0, le=1, allow_inf_nan=False)]
Fraction = Annotated[float, BeforeValidator(number), Field(ge=0, lt=1)]
Alpha = Annotated[float, BeforeValidator(number), Field(gt=0.5, le=10, allow_inf_nan=False)]
Rank = Annotated[int | str, BeforeValidator(_rank)]
Seeds = Annotated[list[Seed], Field(min_length=1), AfterValidator(unique)]
Heads = Annotated[list[Head], Field(min_length=1), AfterValidator(unique)]


class Shared(Section):
    """The scalars at the top of params.yaml."""

    profile: Literal["laptop", "smoke", "paper"] = Field(description="name of the profile, printed beside every result")
    threads: Annotated[int, BeforeValidator(number), Field(ge=1, le=1024)] = Field(
        description="CPU threads of every training; results differ between thread counts"
    )
    launch: Annotated[str, AfterValidator(_launch)] = Field(
        description="what starts a training on CIFAR10 or text: python, or accelerate launch or torchrun for several processes"
    )
    mh: Head = Field(description="head size m_h of Tables 2 and 3 and Figures 4 to 6")


class _Loader(yaml.SafeLoader):
    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(k, deep=True) for k, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", node.start_mark)
        return super().construct_mapping(node, deep)


def read(path: str | Path) -> dict:
    """A YAML mapping, or one clear line."""
    try:
        with open(path, encoding="utf-8") as f:
            content = yaml.load(f, _Loader)
    except (OSError, UnicodeDecodeError) as e:
        raise UserError(f"{path}: cannot be read ({e})") from None
    except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as e:
        raise UserError(f"{path}: is not valid YAML: {' '.join(str(e).split())}") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: should be a mapping of keys to values")
    return content


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
        if isinstance(owner, type) and issubclass(owner, BaseModel) and part in owner.model_fields:
            field = owner.model_fields[part]
            owner = field.annotation
    about = f" ({field.description})" if field is not None and field.description else ""
    if error["type"] == "missing":
        return f"{path}: {key} is missing{about}"
    if error["type"] == "extra_forbidden":
        return f"{path}: {key} is not a known parameter"
    rule = error["msg"].removeprefix("Value error, ").removeprefix("Input ")
    if len(error["loc"]) <= 1 and isinstance(error["input"], dict) and error["type"] == "value_error":
        return f"{path}: {rule}"
    return f"{path}: {key} = {_shown(error['input'])} is not allowed: {rule}{about}"


def load(path: str | Path, keys: Iterable[str], sections: Mapping[str, type[Section]]) -> Any:
    """Only the declared keys ("threads", "rates.mh") of params.yaml, typed: cfg.threads, cfg.rates.mh."""
    content, wanted, top = read(path), {}, {}
    for key in keys:
        head, _, name = key.rpartition(".")
        owner = sections[head] if head else Shared
        wanted.setdefault(head, {})[name] = (owner.model_fields[name].annotation, owner.model_fields[name])
    fields = dict(wanted.pop("", {}))
    for head, inner in wanted.items():
        fields[head] = (create_model(sections[head].__name__, __base__=Section, **inner), ...)
    for name in fields:
        if name in content:
            value = content[name]
            if name in wanted and isinstance(value, dict):
                value = {k: v for k, v in value.items() if k in wanted[name]}
            top[name] = value
    return check(create_model("Params", __base__=Section, **fields), top, path)
