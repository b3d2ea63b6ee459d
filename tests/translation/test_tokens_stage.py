"""The stage that makes tokens of a corpus, on lines made for it."""

import subprocess
import sys

import pytest

from attnrate.core import files, stage
from attnrate.core.params import read
from attnrate.sources import pairs
from attnrate.translation import tokens
from tests.conftest import ROOT

LONG = " ".join(["one two three four five six seven eight nine ten eleven twelve"] * 8)
TRAIN = [
    ("“Fine”, it’s here …", "„Gut“, da ist’s …"),
    ("a cat sat there", "eine Katze sass da"),
    ("the dog ran off", "der Hund lief weg"),
    ("he said ( yes ) .", "er sagte ( ja ) ."),
    (LONG, LONG.replace("one", "eins")),  # too long
    (LONG, "kurz"),  # too long, and unlike: counted as too long
    ("a b c d", "a"),  # unlike
    ("x", "u v w x y"),  # unlike, the other way round
]
DEV = [(LONG, "„kurz“"), ("it’s a dev line", "«eine» da")]  # nothing of it is left out
TEST = [("it’s “a test”", "„Das ist’s“ …"), (LONG, "kurz")]


@pytest.fixture
def made():
    """made(normalise): the sides of each part as the tokens read, and the counts."""

    def run(normalise: bool) -> tuple[dict[str, list[str]], dict]:
        pairs.save(stage.data("translation_corpus"), "files", {"train": TRAIN, "dev": DEV, "test": TEST})
        p = read(ROOT / "params.yaml")
        p.translation.tokens |= {
            "vocabulary": 100,
            "max_tokens": 30,
            "ratio": 2.0,
            "coverage": 1.0,
            "normalise": normalise,
        }
        files.write_json("params.yaml", p)
        subprocess.run([sys.executable, ROOT / "stages/translation_tokens.py"], check=True)
        vocabulary = tokens.Vocabulary(stage.data("translation_tokens") / "vocabulary.model")
        found = tokens.load(stage.data("translation_tokens") / "tokens.npz")
        text = {name: [vocabulary.decode(s[i]) for i in range(len(s))] for name, s in found.items()}
        return text, files.read_json(stage.results("translation_tokens") / "counts.json")

    return run


def test_sentences_are_plain_and_alike_and_references_as_they_are(made):
    text, counts = made(normalise=True)
    assert text["train_en"] == ['"Fine," it\'s here ...', "a cat sat there", "the dog ran off", "he said (yes)."]
    assert text["train_de"][0] == '"Gut", da ist\'s ...' and text["train_de"][3] == "er sagte (ja)."
    assert text["dev_en"] == [LONG, "it's a dev line"] and text["dev_de"] == ['"kurz"', '"eine" da']
    assert text["test_en"] == ['it\'s "a test"', LONG]
    parts = counts["parts"]
    assert counts["corpus"] == "files"
    assert {k: parts["train"][k] for k in ("pairs", "too_long", "unlike")} == {"pairs": 4, "too_long": 2, "unlike": 2}
    assert all((parts[p]["pairs"], parts[p]["too_long"], parts[p]["unlike"]) == (2, 0, 0) for p in ("dev", "test"))
    assert [pair[1] for pair in pairs.load(stage.data("translation_corpus"))["test"]] == [pair[1] for pair in TEST]


def test_without_normalising_every_sign_stays(made):
    text, counts = made(normalise=False)
    assert text["train_en"][0] == "“Fine”, it’s here …" and text["test_en"][0] == "it’s “a test”"
    assert counts["parts"]["train"]["unknown_tokens"] == 0
