"""A rebuild that moves results is reported, with the right verdict on every movement."""

import json
import subprocess
from pathlib import Path

import pytest

from attnrate.core.errors import UserError
from attnrate.ops import verify
from tests.conftest import ROOT

VIT = """reading,mh,seed,variant,train_loss,test_loss,test_acc
qk,1,0,original,1.38573,1.41531,0.478
qk,1,1,original,1.38673,1.41631,0.479
"""
LINEAR = """table,target,alteration,filter,model,recipe,mh,seed,mse,floor,dead
2,exp,roll,,transformer,centred,32,0,1e-4,,False
2,exp,roll,,transformer,centred,32,1,2e-4,,False
2,exp,roll,,transformer,centred,32,2,3e-4,,False
"""
FLOORS = "table,target,alteration,filter,floor_free,c_rnn\n2,exp,roll,,0.0301176,inf\n"
FILES = {
    "reports/results/vit_table/vit.csv": VIT,
    "reports/results/linear_table/linear.csv": LINEAR,
    "reports/results/linear_table/floors.csv": FLOORS,
    "reports/claims.json": json.dumps([{"id": "a", "measured": "1.2", "n": 3, "verdict": "reproduced"}]),
    "reports/metrics/summary.json": json.dumps({"reproduced": 1, "acc": 0.5}),
    "params.yaml": "mh: 32\n",
    "dvc.lock": "stages:\n  s:\n    outs:\n    - {path: reports/results/vit_table/vit.csv, md5: '1'}\n"
    "    - {path: data/weights, md5: '2'}\n    - {path: data/more, md5: '3'}\n",
}


@pytest.fixture
def tree(tmp_path):
    """A repository with results; the test stands in it."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    git = ["git", "-c", "user.name=Test", "-c", "user.email=test@example.org"]
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "Results"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    return tmp_path


def edit(tree: Path, name: str, old: str, new: str) -> None:
    path = tree / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))


def report(capsys) -> tuple[int, str]:
    with pytest.raises(SystemExit) as e:
        verify.main([])
    return e.value.code, capsys.readouterr().out


def test_an_unchanged_tree_has_moved_nowhere(tree, capsys):
    code, out = report(capsys)
    assert code == 0
    assert "3 of 3 outs are bit-identical to HEAD" in out
    assert "5 files, 12 numbers compared, 0 values moved, 0 out of tolerance" in out


@pytest.mark.parametrize(
    ("name", "old", "new", "good"),
    [
        ("reports/results/vit_table/vit.csv", "0.478", "0.49", True),  # ± 0.02
        ("reports/results/vit_table/vit.csv", "0.478", "0.508", False),
        ("reports/results/vit_table/vit.csv", "0.478", "", False),
        ("reports/results/linear_table/floors.csv", "0.0301176", "0.0301177", True),  # closed form, six digits
        ("reports/results/linear_table/floors.csv", "0.0301176", "0.030119", False),
        ("reports/results/linear_table/floors.csv", "inf", "1e9", False),
        ("reports/results/linear_table/linear.csv", "2e-4", "2.9e-4", True),  # median within a factor of 4
        (
            "reports/results/linear_table/linear.csv",
            "1e-4,,False\n2,exp,roll,,transformer,centred,32,1,2e-4",
            "1e-2,,True\n2,exp,roll,,transformer,centred,32,1,2e-2",
            False,
        ),
        ("reports/claims.json", '"1.2"', '"1.3"', True),  # words follow their numbers
        ("reports/claims.json", '"n": 3', '"n": 4', False),
        ("reports/claims.json", "reproduced", "undecided", True),  # it may open, but not turn around
        ("reports/claims.json", "reproduced", "not reproduced", False),
        ("reports/metrics/summary.json", "0.5", "0.51", True),
        ("reports/metrics/summary.json", '"reproduced": 1', '"reproduced": 2', True),  # some verdicts open or close
        ("reports/metrics/summary.json", '"reproduced": 1', '"reproduced": 9', False),
    ],
)
def test_a_change_is_shown_and_judged_by_its_tolerance(tree, capsys, name, old, new, good):
    edit(tree, name, old, new)
    code, out = report(capsys)
    assert code == (0 if good else 1)
    moved = [line for line in out.splitlines() if f" {name}  " in line]
    assert moved and any(line.startswith("OUT") for line in moved) is not good
    assert f", {0 if good else 1} out of tolerance" in out


@pytest.mark.parametrize(
    ("old", "new", "good"), [(5.0, 7.4, True), (5.0, 7.6, False), (1.0, 2.9, True), (1.0, 3.1, False)]
)
def test_a_cap_holds_beside_a_factor(old, new, good):
    rule = verify.load_rules().of("reports/results/vit_spectra/ranks.csv", "layer=1:effective")
    assert (rule.used(old, new) <= 1) is good and (rule.factor, rule.cap) == (3, 2.5)


HAND_SET = "target=exp,alteration=causal,filter=signed,model=hand-set,recipe=constructive,mh=2,seed=0:mse"


@pytest.mark.parametrize(
    ("file", "name", "tolerance"),
    [
        ("linear_handset/errors.csv", HAND_SET, "factor 1.05 or ± 1e-09"),
        ("linear_table/linear.csv", f"table=2,{HAND_SET}", "factor 1.05 or ± 1e-09"),
        ("linear_table/linear.csv", f"table=2,{HAND_SET}".replace("hand-set", "transformer"), "factor 4"),
        (
            "rates_table/rates.csv",
            "estimator=pod,pairing=dyadic-0,alpha=1,rank=inf,mh=4:mse",
            "1e-05 relative or ± 1e-12",
        ),
        ("rates_table/slopes.csv", "estimator=trained,pairing=dyadic-0,alpha=2:slope", "± 0.5"),
        ("rates_table/slopes.csv", "estimator=best,pairing=same,alpha=2:slope", "± 0.1"),
        ("vit_beside/scores.csv", "variant=beside,reading=qk,mh=1,seed=0:test_acc", "± 0.02"),
        ("vit_beside/history.csv", "variant=beside,reading=qk,mh=1,seed=0,step=4:loss", "0.05 relative"),
        ("vit_spectra/main_values.csv", "reading=qk,mh=32,layer=1,head=1,k=3:mean", "factor 3 or ± 0.02"),
        ("vit_spectra/main_ranks.csv", "reading=qk,mh=32,layer=1,head=1:energy99", "factor 3 or ± 0.02, ± 2.5"),
    ],
)
def test_results_have_the_tolerance_of_their_kind(file, name, tolerance):
    assert str(verify.load_rules().of(f"reports/results/{file}", name)) == tolerance


def test_one_seed_does_not_move_a_median(tree, capsys):
    edit(tree, "reports/results/linear_table/linear.csv", "3e-4", "0.1")
    code, out = report(capsys)
    assert code == 0 and "0 values moved" in out


def test_what_moved_most_stands_first_with_both_values(tree, capsys):
    edit(tree, "reports/results/vit_table/vit.csv", "0.478", "0.48")
    edit(tree, "reports/results/vit_table/vit.csv", "0.479", "0.55")
    code, out = report(capsys)
    lines = [line for line in out.splitlines() if "test_acc" in line]
    assert code == 1 and lines[0].startswith("OUT") and "0.479 → 0.55" in lines[0]
    assert lines[1].startswith("ok ") and "variant=original,reading=qk,mh=1,seed=0:test_acc" in lines[1]


def test_a_missing_and_a_new_row_are_named(tree, capsys):
    edit(tree, "reports/results/vit_table/vit.csv", "qk,1,1,", "qk,1,7,")
    code, out = report(capsys)
    assert code == 1 and "2 out of tolerance" in out
    assert [line for line in out.splitlines() if "seed=1" in line and "is missing" in line]
    assert [line for line in out.splitlines() if "seed=7" in line and "is new" in line]


def test_another_column_is_named(tree, capsys):
    edit(tree, "reports/results/vit_table/vit.csv", "test_loss", "dev_loss")
    code, out = report(capsys)
    assert code == 1 and "2 out of tolerance" in out
    assert [line for line in out.splitlines() if "is missing" in line and line.endswith("vit.csv  test_loss")]


def test_a_missing_and_a_new_file_are_named(tree, capsys):
    (tree / "reports/results/linear_table/linear.csv").unlink()
    (tree / "reports/results/more.csv").write_text("mh,mse\n1,2\n")
    code, out = report(capsys)
    assert code == 1 and "2 out of tolerance" in out
    assert "reports/results/linear_table/linear.csv  the file" in out and "not in the working tree" in out
    assert "reports/results/more.csv  the file" in out and "not committed" in out


def test_it_says_which_outs_are_bit_identical(tree, capsys):
    edit(tree, "dvc.lock", "md5: '2'", "md5: '4'")
    edit(tree, "dvc.lock", "md5: '3'", "md5: '5'")
    assert "1 of 3 outs are bit-identical to HEAD: reports/results/vit_table/vit.csv\n" in report(capsys)[1]
    edit(tree, "dvc.lock", "md5: '4'", "md5: '2'")
    assert "2 of 3 outs are bit-identical to HEAD; different: data/more\n" in report(capsys)[1]
    edit(tree, "reports/results/vit_table/vit.csv", "0.478", "0.479")
    assert "1 of 3 outs" in report(capsys)[1]


def test_other_parameters_are_no_rebuild(tree):
    edit(tree, "params.yaml", "32", "8")
    with pytest.raises(UserError, match=r"params.yaml differs from HEAD"):
        verify.verify("HEAD")


def test_an_unknown_revision_is_one_line(tree):
    with pytest.raises(SystemExit, match=r"git show: .*nowhere.*revision that exists"):
        verify.main(["nowhere"])


def test_every_rule_is_used_and_the_last_one_judges_no_measured_number():
    rules, used = verify.load_rules(), set()
    for folder in verify.FOLDERS:
        top = ROOT / folder
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.suffix in (".csv", ".json"):
                file = path.relative_to(ROOT).as_posix()
                for cell in verify.cells(file, path.read_text(encoding="utf-8"), rules.keys):
                    rule = rules.of(file, cell.name())
                    used.add(rules.rules.index(rule))
                    if rule is rules.rules[-1] and isinstance(cell.value, float):
                        assert cell.value.is_integer() or file.endswith("translation_tokens/counts.json"), (
                            f"{file} {cell.name()}"
                        )
    assert used == set(range(len(rules.rules)))
