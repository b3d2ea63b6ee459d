"""params.yaml under attack: whatever stands in it, it is refused in plain lines or every later stage can use it."""

import copy
import datetime
import hashlib
import math
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, configuration, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from attnrate.ops import profile
from attnrate.schemas import check as config
from attnrate.core.errors import UserError
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


def check(content: dict) -> BaseModel | list[str]:
    """The parameters, or the lines of the refusal."""
    what = repr(content).encode()
    try:
        found = config.check(Params, content, "params.yaml")
    except UserError as e:
        note("refused", what)
        return plain(str(e))
    note("accepted", what)
    return found


def read(text: bytes) -> BaseModel | str:
    """As `validate` does it, from a file: the parameters, or the refusal."""
    Path("params.yaml").write_bytes(text)
    try:
        found = config.check(Params, config.read("params.yaml"), "params.yaml")
    except UserError as e:
        note("refused", text)
        return "\n".join(plain(str(e)))
    note("accepted", text)
    return found


def changed(**changes) -> dict:
    """params.yaml with other values; rates__mh stands for rates.mh."""
    content = copy.deepcopy(BASE)
    for key, value in changes.items():
        *path, last = key.split("__")
        owner = content
        for part in path:
            owner = owner[part]
        owner[last] = value
    return content


def sound(found: BaseModel) -> None:
    """What was accepted: whole numbers are integers, others finite, and it survives the file."""
    dumped = found.model_dump(mode="json")
    for key, value in profile.flatten(dumped).items():
        for item in value if isinstance(value, list) else [value]:
            assert item is None or type(item) in (int, str) or (type(item) is float and math.isfinite(item)), key
    assert config.check(Params, yaml.safe_load(yaml.safe_dump(dumped)), "params.yaml") == found


@pytest.mark.parametrize("key", LEAVES)
def test_every_value_of_every_key_is_refused_by_name_or_sound(key):
    for value in JUNK:
        found = check(changed(**{key.replace(".", "__"): value}))
        if isinstance(found, BaseModel):
            sound(found)
        else:
            assert all(key in line for line in found), found
            assert len(found) == 1 or isinstance(value, list), "one line an error"


@pytest.mark.parametrize("key", LEAVES)
def test_a_key_that_is_missing_misspelt_or_in_the_wrong_place_is_named(key):
    section, _, name = key.rpartition(".")
    for wrong in (f"{name}_", name.upper(), f" {name}", f"{name}\n", "<<"):
        content = copy.deepcopy(BASE)
        owner = content[section] if section else content
        owner[wrong] = owner.pop(name)
        lines = check(content)
        shown = f"{section}.{wrong}".lstrip(".").replace("\n", "\\n")
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
    found = check(changed(**{key.replace(".", "__"): value for key, value in changes.items()}))
    if isinstance(found, BaseModel):
        sound(found)


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
    "twice inside": TEXT.replace(b"  tau: 16", b"  tau: 16\n  tau: 16"),
    "tab": TEXT.replace(b"  tau: 16", b"\ttau: 16"),
    "indent": TEXT.replace(b"  tau: 16", b"   tau: 16"),
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
        TEXT.replace(b"mh: 32", b'mh: "3.2e1"', 1),
        TEXT.replace(b"tau: 16", b"tau: 1_6", 1),
        TEXT.replace(b"threads: 2", b"threads: &two 2").replace(b"  width_rank: 6", b"  width_rank: 6 # *two"),
        TEXT.replace(b"paper_lr: 0.001", b"paper_lr: 1e-3"),
        TEXT.replace(b"    - inf", b"    - .inf"),
    ],
)
def test_other_spellings_of_the_same_values_are_accepted(text):
    assert read(text) == config.check(Params, BASE, "params.yaml")


TOGETHER = [
    ({"rates__n": 16}, "rates.n"),
    ({"rates__width_rank": 20, "rates__n": 17}, "rates.width_rank"),
    ({"rates__mh": [3], "rates__n": 5}, "rates.mh"),
    ({"rates__train_mh": [256], "rates__n": 17}, "rates.train_mh"),
    ({"rates__alphas": [1.0, 1.0000001]}, "rates.alphas"),
    ({"rates__queries": 3, "rates__tau": 2}, "rates.queries"),
    ({"rates__warmup": 1000}, "rates.warmup"),
    ({"rates__free_modes": 15}, "rates.free_modes"),
    ({"rates__width_rank": 25}, "rates.free_modes"),
    ({"linear__warmup": 4000}, "linear.warmup"),
    ({"linear__cells": ["exp/original"]}, "linear.cells"),
    ({"linear__cells": ["exp/causal/signed"]}, "linear.cells"),
    ({"linear__cells": ["exp/original", "exp/none"]}, "linear.cells"),
    ({"gallery__warmup": 1500}, "gallery.warmup"),
    ({"gallery__mass_variants": ["untied", "segment-id"]}, "gallery.mass_variants"),
    ({"gallery__selection_variants": ["raw-index"]}, "gallery.selection_variants"),
    ({"vit__patch": 5}, "vit.patch"),
    ({"vit__patch": 16}, "vit.image_size"),
    ({"vit__heads": 3}, "vit.heads"),
    ({"vit__main_mh": 33}, "vit.main_mh"),
    ({"vit__mh_sweep": [33]}, "vit.mh_sweep"),
    ({"vit__batch": 65, "vit__train_images": 64}, "vit.batch"),
    ({"vit__data": "toy", "vit__batch": 641}, "vit.batch"),
    ({"vit__accumulate": 65}, "vit.accumulate"),
    ({"vit__mlp_ratio": 0.01}, "vit.mlp_ratio"),
    ({"vit__readings": ["width"], "vit__mlp_ratio": 0.4}, "vit.mlp_ratio"),
    ({"vit__extra_seeds": [3]}, "vit.extra_seeds"),
    ({"vit__start": "vit_tiny", "vit__readings": ["qk", "head"]}, "vit.start"),
    ({"vit__main_mh": 8.0}, "vit.main_mh"),
    ({"vit__mh_sweep": [1, "2"]}, "vit.mh_sweep"),
    ({"translation__heads": 3}, "translation.heads"),
    ({"translation__width": 9, "translation__heads": 3}, "translation.width"),
    ({"translation__batch_tokens": 60}, "translation.batch_tokens"),
    ({"translation__variants": ["continued"]}, "translation.variants"),
    ({"translation__corpus": "files", "translation__dev": "d", "translation__test": "t"}, "translation.train"),
]


@pytest.mark.parametrize(("changes", "named"), TOGETHER)
def test_values_that_do_not_go_together_are_refused_in_one_line(changes, named):
    (line,) = check(changed(**changes))
    assert named in line


def test_more_than_three_hundred_different_files_were_tried():
    for key in LEAVES:
        for value in TYPES[:6]:
            check(changed(**{key.replace(".", "__"): value}))
    assert len(SEEN["refused"]) >= 300


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace(b"mh: 32", b"mh: 0", 1),
        TEXT.replace(b"  tau: 16", b"\ttau: 16"),
        BROKEN["brackets"],
        BROKEN["object"],
        TEXT + TEXT,
    ],
)
def test_the_stage_refuses_and_touches_nothing(tmp_path, text):
    (tmp_path / "params.yaml").write_bytes(text)
    (tmp_path / "validated.txt").write_text("from an earlier run")
    before = {p.relative_to(tmp_path): p.read_bytes() for p in tmp_path.rglob("*")}
    command = [
        sys.executable,
        str(ROOT / "stages" / "validate.py"),
        "--params",
        "params.yaml",
        "--out",
        "validated.txt",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("validate: params.yaml: ") and "Traceback" not in done.stderr
    assert {p.relative_to(tmp_path): p.read_bytes() for p in tmp_path.rglob("*")} == before
