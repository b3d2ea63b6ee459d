"""The rehearsal keeps the paper's sizes and shortens everything else."""

import os
from pathlib import Path

import pytest

from attnrate.core import params
from attnrate.ops import rehearse, stages
from attnrate.ops.profile import overlay
from attnrate.sources import corpora, fetch
from tests.conftest import ROOT


def test_the_rehearsal_has_the_papers_sizes_and_two_steps():
    found, path = rehearse.rehearsal(ROOT), ROOT / "profiles" / "paper.yaml"
    paper = overlay(params.read(ROOT / "params.yaml"), params.read(path), path)
    for experiment in ("rates", "linear", "examples", "vit", "translation"):
        assert found[experiment]["model"] == paper[experiment]["model"], experiment
    for experiment, group, key in (
        *(("rates", "target", key) for key in ("tau", "terms")),
        *(("vit", "main", "mh"), ("linear", "target", "tau")),
        *(("translation", "tokens", key) for key in ("vocabulary", "max_tokens")),
    ):
        assert found[experiment][group][key] == paper[experiment][group][key], f"{experiment}.{group}.{key}"
    models = [{name.split("-")[0] for name in tree["vit"]["grid"]["models"]} for tree in (found, paper)]
    assert models[0] == models[1] and len(found["vit"]["grid"]["models"]) == len(models[0])
    assert (
        found["linear"]["mixing"]["train"]["steps"]
        == found["linear"]["train"]["steps"]
        == found["rates"]["free_kernel"]["steps"]
        == 2
    )
    assert {recipe["steps"] for recipe in found["rates"]["recipes"].values()} == {2}
    assert [found[e]["train"]["max_steps"] for e in ("vit", "translation")] == [2, 2]
    assert {task["steps"] for task in found["examples"]["tasks"].values()} == {2}
    assert (found["vit"]["data"]["name"], found["translation"]["data"]["corpus"]) == ("toy", "toy")  # no network
    assert found["vit"]["sweep"]["recipe"] == "authors" and found["vit"]["recipes"] == paper["vit"]["recipes"]
    assert found["vit"]["beside"]["recipe"] == "muon"  # at the paper's size, here alone
    assert found["translation"]["train"]["accumulate"] == paper["translation"]["train"]["accumulate"] > 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inside DVC
def test_the_rehearsal_has_the_stages_of_the_paper_profile_and_seeds_as_items():
    path = ROOT / "profiles" / "paper.yaml"
    paper = overlay(params.read(ROOT / "params.yaml"), params.read(path), path)
    (own, gpu), (every, _) = (stages.expanded(ROOT, content) for content in (rehearse.rehearsal(ROOT), paper))
    assert {name.partition("@")[0] for name in own} == {name.partition("@")[0] for name in every}
    seeds = {name for name in own if "seed" in name}
    assert {"vit_main@seed0", "vit_main@seed1", "vit_beside@seed0", "translation_main@seed0"} <= seeds <= gpu
    assert {"vit_permuted@seed0", "vit_permuted@seed1", "translation_permuted@permuted_seed0"} <= seeds
    assert f"all {len(every)} stages" in (ROOT / "docs" / "cluster.md").read_text()


def test_archives_come_through_hosts_that_misbehave(tmp_path, capfd):
    """One is gone, one has half a file, one another file, one takes days, and the one that is left hangs up."""
    environment, limits = dict(os.environ), (fetch.WINDOW, fetch.PAUSE)
    found = rehearse.sentences(tmp_path)
    assert {part: len(list(corpora.read_lines(Path(f"{prefix}.en")))) for part, prefix in found.items()} == {
        "train": 3 * 600,
        "dev": 10,
        "test": 4,
    }
    out, told = capfd.readouterr()
    for said in ("refused", "sha256 differs", "less than 20 kB a second", "the connection closed after"):
        assert said in told, said
    assert "5 archives came through hosts that were gone, truncated, other, slow, drops, in 30 requests" in out
    assert (dict(os.environ), (fetch.WINDOW, fetch.PAUSE)) == (environment, limits)
