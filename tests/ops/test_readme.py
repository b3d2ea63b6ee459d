"""README.md says what the committed results say."""

import json
import re
import subprocess

import pytest

from attnrate.core.errors import UserError
from attnrate.ops import costs, readme
from tests import pipeline
from tests.conftest import ROOT

MARKED = {name: f"<!-- {name}:begin --><!-- {name}:end -->" for name in ("costs", "ratios", "dag")}
TEXT = "top\n<!-- results:begin -->\nold\n<!-- results:end -->\nmiddle\n" + "\n".join(MARKED.values()) + "\nend\n"
COSTS = "| stage | seconds | peak memory (GB) |\n|---|---:|---:|\n" + "".join(
    f"| {stage} | 60.0 | 1.50 |\n"
    for stage in ("rates_train@paper", "linear_rnn", "gallery_table", "train_vit@qk-1", "translate", "page")
)
ROW = {
    "id": "a",
    "ref": "eq. (1)",
    "claim": "|x| grows",
    "criterion": "c",
    "measured": "1.5 (α = 2)",
    "spread": "none",
    "n": 4,
    "data": "d",
    "profile": "laptop",
    "verdict": "partly",
    "why": "So.",
    "command": "dvc repro a",
}


def test_parts_are_replaced_and_the_rest_is_kept():
    parts = {"results": readme.results([ROW, ROW | {"verdict": "reproduced", "measured": ""}]), "dag": "graph \\1"}
    new = readme.render(TEXT, parts)
    assert new.startswith("top\n<!-- results:begin -->\n2 claims, laptop profile: 1 reproduced, 1 partly.\n")
    assert "old" not in new and "\nmiddle\n" in new and MARKED["costs"] in new
    assert new.endswith("<!-- dag:begin -->\ngraph \\1\n<!-- dag:end -->\nend\n")
    assert readme.render(new, {"dag": "g"}) == readme.render(readme.render(TEXT, parts), {"dag": "g"})


def test_a_row_has_claim_value_verdict_and_command():
    *_, row = readme.results([ROW]).splitlines()
    assert row == r"| \|x\| grows (eq. (1)) | 1.5 (α = 2)<br>(none; n = 4) | **partly** | `dvc repro a` |"


@pytest.mark.parametrize("text", ["", TEXT + TEXT, TEXT.replace("dag:end", "dag:fin")])
def test_missing_or_repeated_markers_are_told(text):
    with pytest.raises(UserError, match="should hold <!-- "):
        readme.render(text, {"dag": "g"})


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A README and results of its own, with a drawing that costs nothing."""
    monkeypatch.setattr(readme, "drawing", lambda root: "graph")
    for name, text in (
        ("README.md", TEXT),
        ("reports/claims.json", json.dumps([ROW])),
        ("reports/costs.md", COSTS),
        ("benchmarks/results.md", "| ratio |\n"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_second_call_changes_nothing(tree):
    readme.main()
    text = (tree / "README.md").read_text()
    assert "1 claims, laptop profile" in text and "\n| ratio |\n" in text and "\ngraph\n" in text
    assert "| Tables 2 and 3 | 1.0 | 1.5 |" in text and "| **all** | **6** | **1.5** |" in text
    readme.main()
    assert (tree / "README.md").read_text() == text


def test_missing_claims_are_told_in_one_line(tree):
    (tree / "reports/claims.json").unlink()
    with pytest.raises(SystemExit, match=r"^claims\.json is missing"):
        readme.main()


def committed(name: str) -> str:
    done = subprocess.run(["git", "show", f"HEAD:{name}"], cwd=ROOT, capture_output=True)
    if done.returncode:
        pytest.skip(f"HEAD has no {name}")
    return done.stdout.decode()


def test_the_committed_tables_are_those_of_the_committed_results():
    text, rows = committed("README.md"), json.loads(committed("reports/claims.json"))
    parts = {
        "results": readme.results(rows),
        "costs": costs.branches(committed("reports/costs.md")),
        "ratios": committed("benchmarks/results.md").strip(),
    }
    assert readme.render(text, parts) == text, "run `make readme` and commit"


def test_every_stage_belongs_to_one_branch_of_the_costs():
    for stage in {s.name.partition("@")[0] for s in pipeline.stages(ROOT)}:
        assert sum(bool(re.fullmatch(pattern, stage)) for pattern in costs.BRANCHES.values()) == 1, stage


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
