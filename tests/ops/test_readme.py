"""README.md and docs/ say what the committed results say."""

import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import yaml

from attnrate.core.errors import UserError
from attnrate.ops import costs, readme
from attnrate.report import published
from attnrate.report.claims.ledger import read_criteria
from attnrate.report.table1 import PAPER as ACCURACY
from attnrate.report.table_translation import PAPER as BLEU
from attnrate.report.tables_linear import PAPER as ERRORS
from tests import pipeline
from tests.conftest import ROOT
from tests.report.made import publish

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inside DVC
PART = {"name": "roll", "effect": 0.5, "interval": [0.25, 0.75], "test": "below", "margin": 0.25, "replicates": 4}
FINDING = {
    "measured": "|x| = 1.5",
    "n": 4,
    "profile": "laptop",
    "verdict": "partly",
    "why": "So.",
    "unit": "",
    "paper": "",
    "ours": False,
}
FINDING |= {
    "replicates": 4,
    "needs": "",
    "converged": "not run",
    "exact": False,
    "parts": [PART | {"outcome": "fails"}],
}
CLAIMS = [
    {"id": i, **FINDING, **{k: c[k] for k in ("ref", "claim", "command", "criterion")}}
    for i, c in read_criteria().items()
]
RUNS = {"machines": [{}], "stages": {"fig1": {"seconds": 60.0, "peak_gb": 1.5, "on": 0, "outs": "1"}}}
SOURCES = ("dvc.yaml", "params.yaml", ".dvc/config", *(f"profiles/{name}.yaml" for name in ("smoke", "desk", "paper")))


def part(text: str, name: str) -> str:
    return re.search(f"<!-- {name}:begin -->\n(.*?)\n<!-- {name}:end -->", text, re.DOTALL)[1]


def columns(claims: list[dict]) -> list:
    return published.columns(claims, Path("published"))


def test_a_column_for_each_profile_and_the_verdict_of_the_largest_that_decides():
    name = readme.ROWS[0].leads["m_h ≥ r"]
    (row,) = (c for c in CLAIMS if c["id"] == name)
    publish(Path(), [row | {"measured": "at night", "verdict": "reproduced", "replicates": 9}])
    stages = {"fig1": {"meta": {"branch": "Figure 1"}}, "table1": {"meta": {"branch": "report"}}}
    Path("dvc.yaml").write_text(yaml.safe_dump({"stages": stages | {"fig_vit": {"meta": {"branch": "CIFAR10"}}}}))
    text = readme.results(columns(CLAIMS))
    head, line = (next(x for x in text.splitlines() if x.startswith(f"| {w} ")) for w in ("of the paper", "Figure 1"))
    assert "| laptop | desk | paper |" in head and "m_h ≥ r: at night (reproduced; desk, n = 4)" in line
    assert "| 9 partly | 1 reproduced |  |" in line and "Laptop and desk profile." in text
    assert (
        "desk: 1.5 hours, 2.5 GB" in text
        and "), CIFAR10 not run yet; paper" in text
        and "paper: not run yet: `dvc exp run" in text
    )
    (line,) = (x for x in readme.ledger(columns(CLAIMS), {}).splitlines() if row["claim"] in x)
    assert "**partly**, gate not run | **reproduced**, gate not run |" in line
    assert "laptop partly, desk reproduced: replicates 4 → 9" in line


def test_every_claim_belongs_to_one_row():
    named = Counter(i for row in readme.ROWS for i in (*row.leads.values(), *row.others))
    assert named == Counter(list(read_criteria()))


def test_the_rows_name_stages_and_the_papers_own_numbers():
    stages = {s.name.partition("@")[0] for s in pipeline.stages(ROOT)}
    assert {name for row in readme.ROWS for name in row.stage.split()} <= stages
    known = {
        "Table 1": {*ACCURACY.values(), *BLEU.values()},
        "Table 2": {e for (table, *_), pair in ERRORS.items() if table == 2 for e in pair},
        "Table 3": {e for (table, *_), pair in ERRORS.items() if table == 3 for e in pair},
    }
    for row in (r for r in readme.ROWS if r.name in known):
        found = set(map(float, re.findall(r"\d+\.\d+(?:e-\d+)?", row.paper)))
        assert found == known[row.name], row.name


def test_a_row_has_our_numbers_the_papers_and_then_its_verdicts():
    other = [c | {"verdict": "reproduced", "measured": "7"} if c["id"] == "recipe" else c for c in CLAIMS]
    text = readme.results(columns(other))
    line = next(line for line in text.splitlines() if line.startswith("| Figure 1 "))
    _, _, ours, paper, counted, *empty, command, _ = re.split(r" ?(?<!\\)\| ?", line)
    assert ours.startswith(r"m_h ≥ r: \|x\| = 1.5 (partly; laptop, n = 4)<br>") and paper == readme.ROWS[0].paper
    assert counted == "1 reproduced, 8 partly" and command == "`dvc repro fig1`" and empty == ["", ""]
    assert f"Laptop profile. {len(CLAIMS)} claims of the paper: " in text


def test_the_ledger_has_every_claim_with_numbers_then_verdict_needs_and_command():
    open_one = {"verdict": "undecided", "needs": "about 9 replicates", "measured": "", "parts": [], "paper": "3.57e-02"}
    lines = readme.ledger(columns([*CLAIMS[:-1], CLAIMS[-1] | open_one]), {}).splitlines()
    for c in CLAIMS[:-1]:
        (line,) = (line for line in lines if c["claim"] in line)
        effect = r"| \|x\| = 1.5 (laptop, n = 4) |  | roll: 0.5 [0.25, 0.75], to be below 0.25: fails |"
        effect += " **partly**, gate not run |"
        assert effect in line and line.endswith(f"|  | `{c['command']}` |")
    wanted = f"|  | 3.57e-02 |  | **undecided**, gate not run | about 9 replicates | `{CLAIMS[-1]['command']}` |"
    assert lines[-1].endswith(wanted)


def test_the_readme_shows_the_picture_of_all_claims_below_the_table():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.match(r"\n\n!\[[^\]]+\]\(reports/figures/ledger\.png\)\n", text.split("<!-- results:end -->")[1])


@pytest.mark.parametrize("text", ["", "<!-- a:begin -->", "<!-- a:begin --><!-- a:end -->" * 2])
def test_missing_or_repeated_markers_are_told(text):
    with pytest.raises(UserError, match=r"page\.md should hold <!-- a:begin -->"):
        readme.fill("page.md", text, {"a": "x"})


@pytest.fixture
def tree(in_scratch):
    """Pages and results of their own, and the project's pipeline."""
    marks = {"README.md": ("results", "costs"), "docs/ledger.md": ("ledger",), "docs/performance.md": ("ratios",)}
    marks |= {"docs/dag.md": ("dag",), "docs/profiles.md": ("profiles",), "docs/cluster.md": ("wall",)}
    pages = {page: "".join(f"<!-- {n}:begin -->old<!-- {n}:end -->\n" for n in names) for page, names in marks.items()}
    content = {"reports/claims.json": json.dumps(CLAIMS), "reports/runs.json": json.dumps(RUNS)}
    content |= {"reports/costs.json": json.dumps({"plans": [{"workers": {"GPU": 8, "CPU": 2}, "hours": 9.0}]})}
    for name, text in (content | pages | {"benchmarks/results.md": r"| \1 ratio |"}).items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(f"top\n{text}end\n" if name in pages else text)
    for name in SOURCES:
        Path(name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, name)
    subprocess.run(["git", "init", "--quiet"], check=True)
    return marks


def test_every_page_is_filled_and_the_rest_is_kept(tree):
    readme.main()
    texts = {page: Path(page).read_text() for page in tree}
    for page, names in tree.items():
        assert texts[page].startswith("top\n") and texts[page].endswith("\nend\n") and "old<!--" not in texts[page]
        assert all(part(texts[page], name) for name in names)
    assert part(texts["docs/performance.md"], "ratios") == r"| \1 ratio |"
    assert "| Figure 1 | 1 | 1.0 | 1.5 |" in part(texts["README.md"], "costs")
    assert "| 8 GPU, 2 CPU | 9 |" in part(texts["docs/cluster.md"], "wall")
    assert "`profile` | laptop | smoke | desk | paper" in part(texts["docs/profiles.md"], "profiles")
    readme.main()
    assert {page: Path(page).read_text() for page in tree} == texts


@pytest.mark.parametrize("name", ["reports/claims.json", "reports/runs.json", "reports/costs.json", "docs/dag.md"])
def test_a_missing_file_is_told_in_one_line_and_nothing_is_written(tree, name):
    Path(name).unlink()
    with pytest.raises(SystemExit, match=f"^{name} is missing"):
        readme.main()
    assert "old<!--" in Path("README.md").read_text()


def test_the_drawing_has_every_branch_and_every_stage(tree):
    text = readme.drawing()
    nodes = dict(re.findall(r'(node\d+)\["(.*?)"\]', text))
    counted = sum(int(re.search(r"(\d+) stages", label)[1]) if "<br>" in label else 1 for label in nodes.values())
    assert len(nodes) <= 12 and counted == len(pipeline.stages(ROOT))
    assert {label.split("<br>")[0] for label in nodes.values()} == {*costs.branches().values(), *readme.ALONE}
    edges = {(nodes[a], nodes[b]) for a, b in re.findall(r"(node\d+) --> (node\d+)", text)}
    before = {start.split("<br>")[0] for start, end in edges if end == "page"}
    assert "report" in before and not before & {"claims", "validate"}  # direct ones alone
    assert not any(end == "validate" for _, end in edges) and not any(start == "page" for start, _ in edges)


def committed(name: str) -> str:
    done = subprocess.run(["git", "show", f"HEAD:{name}"], cwd=ROOT, capture_output=True)
    if done.returncode:
        pytest.skip(f"HEAD has no {name}")
    return done.stdout.decode()


def test_the_committed_pages_are_those_of_the_committed_results(tree):
    command = ["git", "ls-tree", "-r", "--name-only", "HEAD", "--", "reports/published"]
    shown = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    shown = [name for name in shown if name.endswith((".json", ".yaml")) and "/results/" not in name]
    made = (f"reports/{n}.json" for n in ("claims", "runs", "costs"))
    for name in (*SOURCES, *tree, *made, *shown, "benchmarks/results.md"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(committed(name))
    readme.main()
    for page in tree:
        assert Path(page).read_text() == committed(page), "run `make readme` and commit"


def test_every_link_of_the_readme_leads_to_a_committed_file():
    text = committed("README.md")
    links = {link for link in re.findall(r"\]\(([^)]+)\)", text) if not link.startswith("http")}
    tree = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    files = tree.stdout.splitlines()
    assert links and [link for link in links if not any(f == link or f.startswith(f"{link}/") for f in files)] == []


def test_stages_and_targets_named_in_the_readme_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"dvc repro (\w+)", text)) <= {s.name.split("@")[0] for s in pipeline.stages(ROOT)}
    targets = re.findall(r"^    make (\w+)", text, re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text()
    assert targets and all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
