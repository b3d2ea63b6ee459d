"""docs/profiles.md says what the profiles change."""

import re
import shutil

import pytest
import yaml

from attnrate.core.errors import UserError
from attnrate.ops import profiles
from tests.conftest import ROOT
from tests.ops.test_readme import committed


def test_a_row_for_each_changed_parameter():
    base = {"a": 1, "b": {"c": list(range(6)), "d": None}, "e": 5}
    lines = profiles.table(base, {"smoke": {"a": 2, "e": 5}, "paper": {"b": {"c": [1, 2], "d": 3}}}).splitlines()
    assert lines == [
        "| parameter | laptop | smoke | paper |",
        "|---|---|---|---|",
        "| `a` | 1 | 2 |  |",
        "| `b.c` | 6 values |  | 1, 2 |",
        "| `b.d` | null |  | 3 |",
    ]


def test_missing_markers_are_told():
    with pytest.raises(UserError, match="should hold"):
        profiles.fill("nothing", "x")


def test_the_committed_table_is_that_of_the_committed_profiles():
    text = committed("docs/profiles.md")
    params, smoke, paper = (
        yaml.safe_load(committed(f)) for f in ("params.yaml", "profiles/smoke.yaml", "profiles/paper.yaml")
    )
    new = profiles.fill(text, profiles.table(params, {"smoke": smoke, "paper": paper}))
    assert new == text, "run `make readme` and commit"


@pytest.mark.parametrize("name", sorted(p.name for p in (ROOT / "docs").glob("*.md")))
def test_links_between_documents_lead_somewhere(name):
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", (ROOT / "docs" / name).read_text(encoding="utf-8")):
        assert (ROOT / "docs" / link).exists(), link


def test_the_command_fills_the_table(tmp_path):
    shutil.copytree(ROOT / "profiles", tmp_path / "profiles")
    shutil.copy(ROOT / "params.yaml", tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/profiles.md").write_text(f"top\n{profiles.BEGIN}\n{profiles.END}\nend\n")
    profiles.main(tmp_path)
    text = (tmp_path / "docs/profiles.md").read_text()
    assert "| `profile` | laptop | smoke | paper |" in text and text.startswith("top\n") and text.endswith("end\n")
