"""The one reader of YAML: p.vit.model.width is a plain value. The stage `validate` alone checks types and ranges."""

import math
import re
from pathlib import Path

import yaml

from attnrate.core.errors import UserError

FLOAT = "tag:yaml.org,2002:float"


class Group(dict):
    """A mapping whose keys are attributes too."""

    def __getattr__(self, key: str):
        if key not in self:
            raise AttributeError(f"params.yaml has no {key} among {', '.join(self)}")
        return self[key]


class _Loader(yaml.SafeLoader):
    def mapping(self, node: yaml.MappingNode) -> Group:
        keys = [self.construct_object(k, deep=True) for k, _ in node.value]
        if twice := [key for key in keys if keys.count(key) > 1]:
            raise yaml.constructor.ConstructorError(None, None, f"key {twice[0]!r} stands twice", node.start_mark)
        return Group(self.construct_mapping(node, deep=True))

    def number(self, node: yaml.ScalarNode) -> int | float | str:
        """`-S lr=1e-5` writes 1e-05, which YAML 1.1 takes for a word; infinity is the word inf."""
        value = self.construct_yaml_float(node)
        if value == math.inf:
            return "inf"
        return int(value) if value.is_integer() and "e" in node.value.lower() else value


_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.mapping)
_Loader.add_constructor(FLOAT, _Loader.number)
_Loader.add_implicit_resolver(FLOAT, re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789"))


def read(path: str | Path) -> Group:
    """A YAML mapping, or one clear line."""
    try:
        with open(path, encoding="utf-8") as f:
            content = yaml.load(f, _Loader)
    except (OSError, UnicodeDecodeError) as e:
        raise UserError(f"{path}: cannot be read ({e})") from None
    except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as e:
        raise UserError(f"{path}: is not valid YAML: {' '.join(str(e).split())}") from None
    if not isinstance(content, Group):
        raise UserError(f"{path}: should be a mapping of keys to values")
    return content
