"""`attnrate trace`: from a file to what it came from."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from attnrate import cli
from attnrate.ops import runlog
from tests import pipeline
from tests.conftest import ROOT
from tests.ops.test_runlog import ON

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inside DVC
TORCH = ON | {"threads": 2, "gpus": ["a GPU"], "packages": {"torch": "2.15"}}


@pytest.fixture(autouse=True)
def tree(in_scratch):
    """The project's pipeline, whose every stage has run with the parameters of params.yaml."""
    for name in ("dvc.yaml", "params.yaml", ".dvc/config"):
        Path(name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, name)
    subprocess.run(["git", "init", "--quiet"], check=True)
    params = yaml.safe_load(Path("params.yaml").read_text())
    lock = {}
    for stage in pipeline.stages(ROOT):
        own = {key: pipeline.lookup(params, key) for key in stage.params}
        outs = [{"path": path, "md5": "111"} for path in stage.outs]
        lock[stage.name] = {"cmd": stage.cmd, "params": {"params.yaml": own}, "outs": outs}
    Path("dvc.lock").write_text(yaml.safe_dump({"schema": "2.0", "stages": lock}))
    machines = {name: TORCH if "train" in name else ON for name in lock}
    runs = ({"stage": name, "seconds": 1.0, "peak_gb": 1.0, "on": on} for name, on in machines.items())
    runlog.LOG.write_text("".join(json.dumps(run) + "\n" for run in runs))


def trace(capsys, path: str) -> dict[str, str]:
    """The line of each stage, by its name."""
    cli.main(["trace", path])
    head, *lines = capsys.readouterr().out.splitlines()
    return {"head": head} | {line.partition(": ")[0]: line for line in lines if ": " in line}


def test_a_table_leads_to_the_trainings_behind_it_and_to_no_other(capsys):
    cli.main(["trace", "reports/tables/table2.csv"])
    text = capsys.readouterr().out
    line = next(line for line in text.splitlines() if line.startswith("linear_train@centred: "))
    assert "written by linear_table\n" in text and "synthetic data" in line and "laptop profile" in line
    assert "linear.cells.seeds = [0, 1, 2, 3, 4]" in line and "linear.eval.seed = 7" in line and "run log" not in text
    on = text[text.index("torch 2.15") :].splitlines()[1]
    assert "linear_train@centred" in on and "linear_table" not in on and "vit" not in text
    assert "2 threads" in text and "a GPU" in text


def test_a_result_on_real_data_names_the_data_set(capsys):
    lines = trace(capsys, "reports/figures/fig3.png")
    assert "cifar10 data" in lines["vit_main@all"] and not any("translation" in name for name in lines)
    lines = trace(capsys, "reports/tables/table1.md")
    assert "cifar10, interface data" in lines["table1"] and "interface data" in lines["translation_main@all"]


def test_parameters_are_those_of_dvc_lock(capsys):
    """And not those of a params.yaml that was edited since."""
    text = Path("params.yaml").read_text()
    Path("params.yaml").write_text(re.sub(r"seeds: \[.*?\]", "seeds: [5]", text))
    assert "seeds = [0, 1, 2" in trace(capsys, "reports/figures/fig4.png")["examples_train@mass"]


def test_a_run_of_other_outs_is_told(capsys):
    """As after a pull of somebody's dvc.lock."""
    runlog.keep()
    runlog.LOG.unlink()
    assert "run log" not in trace(capsys, "reports/figures/fig4.png")["examples_table"]
    lock = yaml.safe_load(Path("dvc.lock").read_text())
    lock["stages"]["examples_table"]["outs"][0]["md5"] = "222"
    Path("dvc.lock").write_text(yaml.safe_dump(lock))
    lines = trace(capsys, "reports/figures/fig4.png")
    assert "a run of other outs" in lines["examples_table"] and "run log" not in lines["fig_examples"]
    runlog.KEPT.unlink()
    assert "no run of it" in trace(capsys, "reports/figures/fig4.png")["examples_table"]


def test_a_stage_that_never_ran_is_one_line():
    lock = yaml.safe_load(Path("dvc.lock").read_text())
    del lock["stages"]["rates_table"]
    Path("dvc.lock").write_text(yaml.safe_dump(lock))
    with pytest.raises(SystemExit, match=r"dvc\.lock has no run of rates_table"):
        cli.main(["trace", "reports/figures/fig1.svg"])
    Path("dvc.lock").unlink()
    with pytest.raises(SystemExit, match=r"dvc\.lock has no run of validate"):
        cli.main(["trace", "reports/figures/fig1.svg"])


@pytest.mark.parametrize("path", ["README.md", "nowhere.csv", str(Path("/"))])
def test_a_file_of_no_stage_is_told_in_one_line(path):
    with pytest.raises(SystemExit, match=r"^attnrate trace: .*: no stage of dvc\.yaml writes it$"):
        cli.main(["trace", path])
