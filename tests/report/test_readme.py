"""README.md says what the committed results say."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from attnrate.core.stage import UserError
from attnrate.report import readme
from tests import pipeline
from tests.conftest import ROOT

TEXT = "top\n<!-- results:begin -->\nold\n<!-- results:end -->\nmiddle\n<!-- dag:begin --><!-- dag:end -->\nend\n"
ROW = {
    "id": "a", "ref": "eq. (1)", "claim": "|x| grows", "criterion": "c", "measured": "1.5 (α = 2)", "spread": "none", "n": 4,
    "data": "d", "profile": "laptop", "verdict": "partly", "why": "So.", "command": "dvc repro a",
}  # fmt: skip


def test_both_parts_are_replaced_and_the_rest_is_kept():
    new = readme.render(TEXT, [ROW, ROW | {"verdict": "reproduced", "measured": ""}], "graph \\1")
    assert new.startswith("top\n<!-- results:begin -->\n2 claims, laptop profile: 1 reproduced, 1 partly.\n")
    assert (
        "old" not in new
        and "\nmiddle\n" in new
        and new.endswith("<!-- dag:begin -->\ngraph \\1\n<!-- dag:end -->\nend\n")
    )
    assert readme.render(new, [ROW], "g") == readme.render(TEXT, [ROW], "g")


def test_a_row_has_claim_value_verdict_and_command():
    *_, row = readme.results([ROW]).splitlines()
    assert row == r"| \|x\| grows (eq. (1)) | 1.5 (α = 2)<br>(none; n = 4) | **partly** | `dvc repro a` |"


@pytest.mark.parametrize("text", ["", TEXT + TEXT, TEXT.replace("dag:end", "dag:fin")])
def test_missing_or_repeated_markers_are_told(text):
    with pytest.raises(UserError, match="should hold <!-- "):
        readme.render(text, [ROW], "g")


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Call main on a README and claims of its own, with a drawing that costs nothing."""
    monkeypatch.setattr(readme, "drawing", lambda root: "graph")
    (tmp_path / "README.md").write_text(TEXT)
    (tmp_path / "claims.json").write_text(json.dumps([ROW]))
    return lambda *args: readme.main(["--claims", "claims.json", *args])


def test_check_fails_in_one_line_until_it_is_written(command):
    with pytest.raises(SystemExit, match=r"^README\.md differs from the results: run `make readme`$"):
        command("--check")
    assert Path("README.md").read_text() == TEXT
    command()
    command("--check")
    assert Path("README.md").read_text() == readme.render(TEXT, [ROW], "graph")


def test_missing_claims_are_told_in_one_line(command):
    Path("claims.json").unlink()
    with pytest.raises(SystemExit, match=r"^claims\.json is missing"):
        command()


def committed(name: str) -> str:
    done = subprocess.run(["git", "show", f"HEAD:{name}"], cwd=ROOT, capture_output=True)
    if done.returncode:
        pytest.skip(f"HEAD has no {name}")
    return done.stdout.decode()


def test_the_committed_table_is_that_of_the_committed_claims():
    text, rows = committed("README.md"), json.loads(committed("reports/claims.json"))
    assert readme.fill(text, "results", readme.results(rows)) == text, "run `make readme` and commit"


def test_the_committed_drawing_is_that_of_the_committed_pipeline(tmp_path):
    text = committed("README.md")
    for name in ("dvc.yaml", "params.yaml", ".dvc/config"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(committed(name))
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    dag = readme.drawing(tmp_path)
    assert dag.startswith("```mermaid\n") and '["validate"]' in dag
    assert readme.fill(text, "dag", dag) == text, "run `make readme` and commit"


def test_every_link_of_the_readme_leads_to_a_committed_file():
    text = committed("README.md")
    links = {link for link in re.findall(r"\]\(([^)]+)\)", text) if not link.startswith("http")}
    tree = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    files = tree.stdout.splitlines()
    assert links and [link for link in links if not any(f == link or f.startswith(f"{link}/") for f in files)] == []


def test_stages_and_parameters_named_in_the_readme_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    stages = {s.name.split("@")[0] for s in pipeline.stages(ROOT)}
    outside = re.sub(r"<!-- (\w+):begin -->.*?<!-- \1:end -->", "", text, flags=re.DOTALL)
    assert set(re.findall(r"dvc repro (\w+)", outside)) <= stages
    assert "source .venv/bin/activate" in text
    for target in re.findall(r"^    make (\w+)", text, re.MULTILINE):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
