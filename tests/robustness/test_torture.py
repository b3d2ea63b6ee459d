"""Some kills and faults of `make torture`, on cheap stages; tests/large has the kills of single trainings."""

import re
import signal

import pytest

from tests.robustness import faults, torture
from tests.robustness.undisturbed import Reference, smoke

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def in_front():
    """Jobs in a shell's background ignore SIGINT, and so would stages."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    space = smoke(tmp_path_factory.mktemp("torture") / "reference", torture.LONGER)
    return Reference(space, ["mixing_rank", "vit_sweep@qk-1"])


def test_killed_stages_leave_nothing_half_done_and_end_with_the_same_bytes(reference, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(torture, "PATIENCE", 20)  # the tests may share the machine
    # Of this seed: SIGTERM as mixing_rank writes, SIGKILL and SIGINT after checkpoints of the training.
    ok = torture.torture(reference, kills=3, seed=4, folder=tmp_path)
    out = capsys.readouterr().out
    assert ok, out
    assert re.search(r"^3 of 3 kills survived \(.*\), [1-3] between a checkpoint and completion;", out, re.M), out
    assert re.search(r"vit_sweep@qk-1 .* after the checkpoint of step \d+ of \d+$", out, re.M), out


@pytest.mark.parametrize("fault", [faults.full_disk, faults.read_only])
def test_a_fault_costs_a_line_and_no_result(reference, tmp_path, fault):
    space = reference.copy(tmp_path / "copy")
    assert faults.problems(fault, reference.stages["mixing_rank"], space, reference) == []


def test_an_out_that_is_written_in_place_is_noticed(tmp_path, capsys):
    space = smoke(tmp_path / "reference", {})
    space.edit(
        "stages/mixing_rank.py",
        "def main(p, to):\n",
        """def main(p, to):
    import time
    out = stage.results("mixing_rank")
    out.mkdir(parents=True)
    (out / "values.json").write_text("half")
    time.sleep(1)
""",
    )
    assert not torture.torture(Reference(space, ["mixing_rank"]), kills=1, seed=3, folder=tmp_path)
    assert "WRONG: reports/results/mixing_rank/values.json differs" in capsys.readouterr().out
