"""params.yaml under attack: whatever stands in it, it is refused in plain lines or every later stage can use it."""

import datetime
import functools
import hashlib
import itertools
import math
import operator
import subprocess
import sys
from pathlib import Path
from types import NoneType

import pytest
import yaml
from hypothesis import HealthCheck, configuration, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from attnrate.core import params
from attnrate.core.errors import UserError
from attnrate.ops import profile
from attnrate.schemas import check as schema
from attnrate.schemas.all import Params
from tests.conftest import NOTES, ROOT
from tests.schemas.test_check import BASE, fields

TEXT = (ROOT / "params.yaml").read_bytes()
LEAVES = [key for key, _ in fields(Params)]
SEEN: dict[str, set[str]] = {"refused": set(), "accepted": set()}
fuzz = settings(
    max_examples=150,
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=False,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

TYPES = [
    "abc",
    "",
    None,
    True,
    False,
    {},
    [[]],
    [{}],
    {"a": 1},
    [None],
    ["x"],
    [True],
    "null",
    datetime.date(2026, 1, 1),
]
NUMBERS = [
    0,
    -1,
    10**12,
    10**400,
    2**31,
    8.5,
    math.nan,
    math.inf,
    -math.inf,
    1.7e308,
    5e-324,
    "1e400",
    "1e-400",
    "0x10",
]
LISTS = [[], [math.nan], [0], [-1], [1, 1], [1, 1.0], ["1", 1], [10**12], [1, [2]], [5e-324], ["inf", math.inf], [300]]
STRINGS = ["x" * 1000, "a\nb", "\0", "\x1b[2J", "١٢", "nan", "-0", "{}", "vit_a b", "vit_; true", "exp/original/x"]
JUNK = [*TYPES, *NUMBERS, *LISTS, *STRINGS]


@pytest.fixture(scope="module", autouse=True)
def report(tmp_path_factory):
    """Hypothesis keeps its files out of the repository."""
    configuration.set_hypothesis_home_dir(tmp_path_factory.mktemp("hypothesis"))
    yield
    NOTES.append(f"params.yaml: {len(SEEN['refused']):,} refused, {len(SEEN['accepted']):,} accepted, all different")


def note(kind: str, what: bytes) -> None:
    SEEN[kind].add(hashlib.sha256(what).hexdigest())


def plain(message: str) -> list[str]:
    """The lines of a refusal: each names the file, and nothing in them is longer or stranger than a line of text."""
    lines = message.split("\n")
    assert all(s.startswith("params.yaml: ") and s.isprintable() and len(s) < 1500 for s in lines), lines
    return lines


def check(content: dict) -> list[str] | None:
    """The lines of the refusal, if it is one; what is accepted is sound."""
    what = repr(content).encode()
    try:
        found = schema.check(Params, content, "params.yaml")
    except UserError as e:
        note("refused", what)
        return plain(str(e))
    note("accepted", what)
    sound(content, found)
    return None


def read(text: bytes | str) -> BaseModel | str:
    """As `validate` does it, from a file: the parameters, or the refusal."""
    text = text.encode() if isinstance(text, str) else text
    Path("params.yaml").write_bytes(text)
    try:
        found = schema.check(Params, params.read("params.yaml"), "params.yaml")
    except UserError as e:
        note("refused", text)
        return "\n".join(plain(str(e)))
    note("accepted", text)
    return found


def changed(changes: dict) -> dict:
    """params.yaml with other values of some dotted keys."""
    content = params.Group(BASE)
    for key, value in changes.items():
        *path, last = key.split(".")
        owner = content
        for name in path:  # what lies beside the path is shared, for nobody changes it
            owner[name] = params.Group(owner[name])
            owner = owner[name]
        owner[last] = value
    return content


class Quoted(yaml.CSafeDumper):
    """A word stays a word: PyYAML would write "1e3" without quotes, which params.read takes for a number."""


Quoted.add_representer(str, lambda dumper, s: dumper.represent_scalar("tag:yaml.org,2002:str", s, style='"'))
Quoted.add_representer(params.Group, lambda dumper, group: dumper.represent_dict(group.items()))


def dump(content: dict) -> str:
    return yaml.dump(content, Dumper=Quoted, sort_keys=False)


def sound(content: dict, found: BaseModel) -> None:
    """What was accepted: every value is plain and of the declared type as it stands, and it survives the file."""
    assert found.model_dump(by_alias=True) == content
    declared = profile.flatten(found.model_dump(by_alias=True))
    for key, value in profile.flatten(content).items():
        pairs = zip(value, declared[key], strict=True) if isinstance(value, list) else [(value, declared[key])]
        for item, typed in pairs:
            assert (
                type(item) in (bool, int, float, str, NoneType) and item not in (math.inf, -math.inf) and item == item
            ), key
            assert type(item) is type(typed) or (type(item) is int and type(typed) is float), key
    assert read(dump(content)) == found


@pytest.mark.parametrize("key", LEAVES)
def test_every_value_of_every_key_is_refused_by_name_or_sound(key):
    for value in JUNK:
        lines = check(changed({key: value}))
        if lines is not None:
            first, *_, last = key.split(".") if "." in key else (key, key)
            assert all(first in line and last in line for line in lines), lines
            assert len(lines) == 1 or isinstance(value, list), "one line an error"


@pytest.mark.parametrize("key", LEAVES)
def test_a_key_that_is_missing_misspelt_or_in_the_wrong_place_is_named(key):
    *path, name = key.split(".")
    for wrong in (f"{name}_", name.upper(), f" {name}", f"{name}\n", "<<"):
        content = changed({key: None})
        owner = functools.reduce(operator.getitem, path, content)
        owner[wrong] = functools.reduce(operator.getitem, [*path, name], BASE)
        del owner[name]
        lines = check(content)
        shown = ".".join([*path, wrong]).replace("\n", "\\n")
        assert any(f"params.yaml: {key} is missing (" in line for line in lines)
        assert f"params.yaml: {shown} is not a known parameter" in lines and len(lines) == 2


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.dates() | st.sampled_from(JUNK),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@fuzz
@given(st.dictionaries(st.sampled_from(LEAVES), values, min_size=1, max_size=6))
def test_any_values_together(changes):
    check(changed(changes))


DAMAGE = [
    b"\t",
    b"\0",
    b"\xff",
    b"  ",
    b": ",
    b"- ",
    b"[",
    b"}",
    b"&a ",
    b"*a ",
    b"!!int ",
    b"!x ",
    b"'",
    b"|\n",
    b"%",
    b"? ",
]


@fuzz
@given(st.data())
def test_any_damage_to_the_text(data):
    lines = TEXT.splitlines(keepends=True)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        junk = data.draw(st.sampled_from(DAMAGE))
        place = data.draw(st.integers(0, len(lines[at])))
        lines[at] = data.draw(
            st.sampled_from([b"", lines[at] * 2, lines[at][:place] + junk + lines[at][place:], lines[at][:place]])
        )
    read(b"".join(lines))


SECTION = b"mh: 3\n"
BROKEN = {
    "nothing": b"",
    "blank": b"\n \n",
    "comment": b"# only\n",
    "scalar": b"3\n",
    "list": b"- mh\n",
    "null": b"null\n",
    "binary": bytes(range(256)),
    "zeros": b"\0" * 500,
    "utf-16": TEXT.decode().encode("utf-16"),
    "latin-1": b"mh: \xe9\n",
    "cut": TEXT[: len(TEXT) // 2],
    "zip": b"PK\x03\x04" + TEXT,
    "two documents": TEXT + b"---\n" + TEXT,
    "twice": TEXT + TEXT,
    "twice inside": TEXT.replace(b"    tau: 16", b"    tau: 16\n    tau: 16"),
    "tab": TEXT.replace(b"    tau: 16", b"\ttau: 16"),
    "indent": TEXT.replace(b"    tau: 16", b"     tau: 16"),
    "flow": b"mh: [1\n",
    "brace": b"{mh: 1\n",
    "object": b"mh: !!python/object/apply:os.system ['touch mark']\n",
    "name": b"mh: !!python/name:os.system\n",
    "module": b"mh: !!python/module:os\n",
    "new": b"mh: !!python/object/new:os.system ['touch mark']\n",
    "tuple": b"mh: !!python/tuple [1]\n",
    "own tag": b"mh: !x 3\n",
    "not an int": b"mh: !!int foo\n",
    "not a float": b"mh: !!float foo\n",
    "not a bool": b"mh: !!bool foo\n",
    "not a date": b"mh: !!timestamp foo\n",
    "not a set": b"mh: !!set [1]\n",
    "not a map": b"mh: !!map 3\n",
    "no month": b"mh: 2001-99-99\n",
    "no hour": b"mh: 2001-01-01 99:00:00\n",
    "no zone": b"mh: 2001-01-01 00:00:00 +99:00\n",
    "no digits": b"mh: 0b_\n",
    "many digits": b"mh: " + b"1" * 5000 + b"\n",
    "many hex digits": b"mh: 0x" + b"f" * 8000 + b"\n",
    "brackets": b"mh: " + b"[" * 3000 + b"]" * 3000,
    "braces": b"{a: " * 3000 + b"}" * 3000,
    "no anchor": b"mh: *nowhere\n",
    "merge": b"a: &a {b: 1}\nrates:\n  <<: *a\n",
    "loop": b"mh: &a [*a]\n",
    "map loop": b"&a\nrates: *a\n",
    "laughs": b"".join(
        b"%c: &%c [%s]\n" % (c, c, b",".join([b"*%c" % (c - 1)] * 9) if c > 97 else b"1") for c in range(97, 106)
    )
    + b"mh: *i\n",
    "list as key": b"? [1]\n: 2\n",
    "number as key": TEXT + b"1: 2\n",
    "null as key": TEXT + b"~: 2\n",
    "nan as key": b".nan: 1\n.nan: 1\n",
    "bad escape": b'mh: "\\q"\n',
    "surrogate": b'mh: "\\ud800"\n',
    "version": b"%YAML 9.9\n---\nmh: 1\n",
    "value": b"mh: =\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_is_no_params_yaml_is_refused(name):
    refusal = read(BROKEN[name])
    assert isinstance(refusal, str)
    assert not Path("mark").exists(), "a tag was executed"


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbf" + TEXT,
        TEXT.replace(b"\n", b"\r\n"),
        b"# first\n" + TEXT + b"\n...\n",
        b"---\n" + TEXT,
        TEXT.replace(b"mh: 32", b"mh: !!int '32'", 1),
        TEXT.replace(b"mh: 32", b"mh: 3.2e1", 1),
        TEXT.replace(b"tau: 16", b"tau: 1_6", 1),
        TEXT.replace(b"threads: 2", b"threads: &two 2", 1).replace(b"depth: 2", b"depth: *two", 1),
        TEXT.replace(b"lr: 0.001", b"lr: 1e-3", 1),
        TEXT.replace(b"lr: 0.001", b"lr: 1e-03", 1),
        TEXT.replace(b"steps: 1000", b"steps: 1e3", 1),
        TEXT.replace(b"ranks: [2, 6, inf]", b"ranks: [2, 6, .inf]", 1),
    ],
)
def test_other_spellings_of_the_same_values_are_accepted(text):
    assert text != TEXT and read(text) == schema.check(Params, BASE, "params.yaml")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"mh: 32", b"mh: '32'"),
        (b"mh: 32", b"mh: 32.0"),
        (b"mh: 32", b'mh: "3.2e1"'),
        (b"steps: 1000", b"steps: 1000.0"),
        (b"steps: 1000", b"steps: yes"),
        (b"lr: 0.001", b"lr: '0.001'"),
        (b"lr: 0.001", b"lr: 1e400"),
        (b"ranks: [2, 6, inf]", b"ranks: [2, 6, -.inf]"),
    ],
)
def test_spellings_that_a_stage_would_take_for_something_else_are_refused(old, new):
    assert old in TEXT
    refusal = read(TEXT.replace(old, new, 1))
    assert isinstance(refusal, str) and "is not allowed" in refusal


TOGETHER = [
    ({"rates.model.n": 16}, "rates.model.n"),
    ({"rates.constructive.width_rank": 40}, "width_rank"),
    ({"rates.constructive.mh": [3], "rates.free_kernel.mh": [3], "rates.model.n": 6}, "rates.constructive.mh"),
    ({"rates.free_kernel.mh": [16]}, "rates.free_kernel.mh"),
    ({"rates.recipes.paper.mh": [256], "rates.model.n": 18}, "rates.recipes.paper.mh"),
    ({"rates.recipes.trained.alphas": [1.0, 3.0]}, "rates.recipes.trained.alphas"),
    ({"rates.target.alphas": [1.0, 2.0]}, "rates.recipes.paper.alphas"),
    ({"rates.target.pairings": ["same"]}, "rates.recipes.paper.pairings"),
    ({"rates.target.terms": 5}, "rates.target.ranks"),
    ({"rates.target.alphas": [1.0, 1.0000001]}, "rates.target.alphas"),
    ({"rates.train.queries": 3, "rates.target.tau": 2}, "rates.train.queries"),
    ({"rates.train.points": 15}, "rates.train.points"),
    ({"rates.recipes.trained.warmup": BASE.rates.recipes.trained.steps}, "rates.recipes.trained.warmup"),
    ({"rates.free_kernel.modes": 14}, "rates.free_kernel.modes"),
    ({"linear.recipes.centred.warmup": BASE.linear.train.steps}, "linear.recipes.centred.warmup"),
    ({"linear.mixing.bare": ["exp/causal/signed"]}, "linear.mixing.bare"),
    ({"linear.mixing.filtered": ["exp/original", "exp/none"]}, "linear.mixing.filtered"),
    ({"linear.target.draws": 4}, "linear.target.draws"),
    ({"linear.mixing.train.steps": 100}, "linear.mixing.train.steps"),
    ({"rates.exact.terms": 128}, "rates.exact.terms"),
    ({"linear.cells.names": ["exp/causal/signed"]}, "linear.cells.names"),
    ({"linear.cells.names": ["exp/original", "exp/none"]}, "linear.cells.names"),
    ({"examples.train.warmup": BASE.examples.tasks.mass.steps}, "examples.train.warmup"),
    ({"examples.tasks.mass.variants": ["untied", "segment-id"]}, "examples.tasks.mass.variants"),
    ({"examples.tasks.selection.variants": ["raw-index"]}, "examples.tasks.selection.variants"),
    ({"vit.model.patch": 5}, "vit.model.patch"),
    ({"vit.model.patch": 16}, "vit.model.image_size"),
    ({"vit.model.heads": 3}, "vit.model.heads"),
    ({"vit.main.mh": 33}, "vit.main.mh"),
    ({"vit.grid.models": ["qk-33"]}, "vit.grid.models"),
    ({"vit.beside.mh": [33]}, "vit.beside.mh"),
    ({"vit.train.batch": 65, "vit.images.train": 64}, "vit.train.batch"),
    ({"vit.data.name": "toy", "vit.train.batch": 641}, "vit.train.batch"),
    ({"vit.train.accumulate": 65}, "vit.train.accumulate"),
    ({"vit.model.mlp_ratio": 0.01}, "vit.model.mlp_ratio"),
    ({"vit.model.mlp_ratio": 0.4}, "vit.model.mlp_ratio"),
    ({"vit.permuted.seeds": [9]}, "vit.permuted.seeds"),
    ({"vit.permuted.parts": ["seed0"]}, "vit.permuted.parts"),
    ({"vit.gate.parts": ["permuted", "qk-3"]}, "vit.gate.parts"),
    ({"vit.sweep.start": "vit_tiny", "vit.grid.models": ["qk-1", "head-1"]}, "vit.sweep.start"),
    ({"vit.main.start": "vit_tiny"}, "vit.model.pool"),
    ({"vit.main.start": "dinov2-saliency"}, "vit.model.pool"),
    ({"vit.main.start": "toy", "vit.model.pool": "token"}, "vit.pretrained.name"),
    ({"vit.pretrained.groups": 257}, "vit.pretrained.images"),
    ({"translation.model.heads": 3}, "translation.model.width"),
    ({"translation.model.width": 9, "translation.model.heads": 3}, "translation.model.width"),
    ({"translation.train.batch_tokens": 60}, "translation.train.batch_tokens"),
    ({"translation.tune.variants": ["continued"]}, "translation.tune.variants"),
    (
        {"translation.data.corpus": "files", "translation.data.dev": "d", "translation.data.test": "t"},
        "translation.data.corpus",
    ),
]


@pytest.mark.parametrize(("changes", "named"), TOGETHER)
def test_values_that_do_not_go_together_are_refused_in_one_line(changes, named):
    (line,) = check(changed(changes))
    assert named in line


def test_more_than_three_hundred_different_files_were_tried():
    for key, value in itertools.product(LEAVES, TYPES):
        if len(SEEN["refused"]) >= 300:  # by the tests above already, unless this one runs alone
            break
        check(changed({key: value}))
    assert len(SEEN["refused"]) >= 300


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace(b"mh: 32", b"mh: 0", 1),
        TEXT.replace(b"    tau: 16", b"\ttau: 16"),
        BROKEN["brackets"],
        BROKEN["object"],
        TEXT + TEXT,
    ],
)
def test_the_stage_refuses_and_touches_nothing(tmp_path, text):
    (tmp_path / "params.yaml").write_bytes(text)
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "params.ok").write_text("from an earlier run")
    before = {p.relative_to(tmp_path): p.is_dir() or p.read_bytes() for p in tmp_path.rglob("*")}
    command = [sys.executable, str(ROOT / "stages" / "validate.py")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("validate: params.yaml: ") and "Traceback" not in done.stderr
    assert {p.relative_to(tmp_path): p.is_dir() or p.read_bytes() for p in tmp_path.rglob("*")} == before
