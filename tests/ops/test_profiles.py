"""docs/profiles.md says what the profiles change."""

import re

import pytest

from attnrate.ops import profiles
from tests.conftest import ROOT


def test_a_row_for_each_changed_parameter():
    base = {"a": 1, "b": {"c": list(range(6)), "d": None}, "e": 5}
    text = profiles.table(base, {"smoke": {"a": 2, "e": 5}, "paper": {"b": {"c": [1, 2], "d": 3}}})
    head, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines())
    assert head == ["parameter", "laptop", "smoke", "paper"]
    assert rows == [["`a`", "1", "2", ""], ["`b.c`", "6 values", "", "1, 2"], ["`b.d`", "null", "", "3"]]


@pytest.mark.parametrize("name", sorted(p.name for p in (ROOT / "docs").glob("*.md")))
def test_links_between_documents_lead_somewhere(name):
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", (ROOT / "docs" / name).read_text(encoding="utf-8")):
        assert (ROOT / "docs" / link).exists(), link
