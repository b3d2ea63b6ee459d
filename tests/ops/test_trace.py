"""`attnrate trace`: from a file to what it came from."""

from pathlib import Path

import pytest

from attnrate import cli
from tests.conftest import ROOT

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inside DVC


@pytest.fixture(autouse=True)
def in_the_tree(in_scratch, monkeypatch):
    monkeypatch.chdir(ROOT)


def test_a_table_leads_to_the_trainings_behind_it_and_to_no_other(capsys):
    cli.main(["trace", "reports/tables/table2.csv"])
    text = capsys.readouterr().out
    assert "written by linear_table\n" in text
    assert (
        "linear_train@centred: synthetic data, laptop profile, linear.eval_seed = 7, linear.seeds = [0, 1, 2]" in text
    )
    assert "torch 2." in text and " threads;" in text and "vit" not in text


def test_a_result_on_real_data_names_the_data_set(capsys):
    cli.main(["trace", "reports/figures/fig3.png"])
    text = capsys.readouterr().out
    assert "train_vit_main: cifar10 data" in text and "translation" not in text


@pytest.mark.parametrize("path", ["README.md", "nowhere.csv", str(Path("/"))])
def test_a_file_of_no_stage_is_told_in_one_line(path):
    with pytest.raises(SystemExit, match=r"^attnrate trace: .*: no stage of dvc\.yaml writes it$"):
        cli.main(["trace", path])
