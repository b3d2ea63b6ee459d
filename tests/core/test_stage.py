"""The run of a stage: its words, its parameters, and folders that appear whole or not at all."""

import sys
from pathlib import Path

import pytest

from attnrate.core import files, stage
from attnrate.core.errors import UserError
from attnrate.core.stage import Outs

RESULTS, DATA = Path("reports/results/demo"), Path("data/demo")


@pytest.fixture
def run(monkeypatch):
    """Run a main as the stage `demo` with some words on its command line."""
    Path("params.yaml").write_text("mh: 4\nrates: {model: {n: 32}}\n")

    def run(main, *words):
        monkeypatch.setattr(sys, "argv", ["stages/demo.py", *words])
        stage.run(main)

    return run


def contents(folder):
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}


def outs(name="demo"):
    to = Outs()
    to.name = name
    return to


# Folders --------------------------------------------------------------------------------------------------------------


def test_both_folders_appear_at_the_end_and_replace_older_ones():
    for name in ("old", "new"):
        with outs() as to:
            for folder in (to.results, to.data):
                (folder / name).write_text(name)
            assert RESULTS.exists() == DATA.exists() == (name == "new"), "nothing shows before the end"
            assert name == "old" or contents(RESULTS) == contents(DATA) == {"old": "old"}
    assert contents(RESULTS) == contents(DATA) == {"new": "new"}
    assert not list(files.SCRATCH.iterdir())


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, SystemExit, UserError])
@pytest.mark.parametrize("before", [False, True])
def test_whatever_goes_wrong_leaves_what_was_there(error, before):
    if before:
        with outs() as to:
            (to.results / "a").write_text("whole")
    with pytest.raises(error), outs() as to:
        (to.results / "a").write_text("half")
        (to.data / "b").write_text("half")
        raise error
    assert (contents(RESULTS) == {"a": "whole"}) if before else not RESULTS.exists()
    assert not DATA.exists() and not list(files.SCRATCH.iterdir())


@pytest.mark.parametrize("order", [("results", "data"), ("data", "results")])
def test_a_folder_that_cannot_be_put_into_place_keeps_the_other_back(order):
    """The one that was asked for last goes first."""
    places = {"results": RESULTS, "data": DATA}
    first, last = (places[name] for name in order)
    last.parents[-2].write_text("a file where a folder should be")
    with pytest.raises(OSError), outs() as to:
        for name in order:
            (getattr(to, name) / "a").write_text("whole")
    assert not first.exists() and not list(files.SCRATCH.iterdir())


def test_a_folder_that_is_not_asked_for_is_not_made():
    with outs("demo/item") as to:
        (to.data / "a").write_text("1")
    assert contents(Path("data/demo/item")) == {"a": "1"} and not Path("reports").exists()


def test_after_closing_the_folders_stay_whatever_follows():
    """As trainings need it, whose checkpoints go once their results are in place."""
    with pytest.raises(ZeroDivisionError), outs() as to:
        (to.results / "a").write_text("whole")
        (to.data / "b").write_text("whole")
        to.close()
        assert contents(RESULTS) == {"a": "whole"} and contents(DATA) == {"b": "whole"}
        raise ZeroDivisionError
    assert contents(RESULTS) == {"a": "whole"} and contents(DATA) == {"b": "whole"}
    assert not list(files.SCRATCH.iterdir())


def test_drafts_of_a_killed_run_go_and_those_of_other_items_stay():
    for name in ("reports-results-demo-1.draft99999", "reports-results-demo-11.draft99999"):
        (files.SCRATCH / name).mkdir(parents=True)
    with outs("demo/1") as to:
        (to.results / "a").touch()
    assert [p.name for p in files.SCRATCH.iterdir()] == ["reports-results-demo-11.draft99999"]


# The command line -----------------------------------------------------------------------------------------------------


def test_parameters_words_and_the_name_of_the_item_reach_main(run):
    seen = []

    def main(p, to, reading, mh):
        seen.append((p.mh, p.rates.model.n, to.name, reading, mh))

    run(main, "qk", "3")
    assert seen == [(4, 32, "demo/qk-3", "qk", "3")]


def test_a_stage_without_items_has_its_own_name(run):
    names = []
    run(lambda p, to: names.append(to.name))
    assert names == ["demo"]


@pytest.mark.parametrize("words", [[], ["qk"], ["qk", "3", "4"], ["--reading", "qk", "--mh", "3"]])
def test_a_wrong_number_of_words_is_answered_by_the_right_one(run, words):
    with pytest.raises(UserError, match=r"^usage: python stages/demo\.py READING MH$"):
        run(lambda p, to, reading, mh: pytest.fail("ran"), *words)


def test_results_and_data_of_other_stages_are_found_by_their_names():
    assert stage.results("rates_table") == Path("reports/results/rates_table")
    assert stage.data("vit_main") == Path("data/vit_main") and stage.results() == Path("reports/results")
