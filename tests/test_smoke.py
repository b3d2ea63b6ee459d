"""The whole DAG at the smoke profile, in a copy of the repository, without network."""

import json
import os
import re
import shutil
import tomllib
from collections import defaultdict

import pandas as pd
import pytest
import yaml

from tests import pipeline
from tests.conftest import ROOT
from tests.pipeline import covers

pytestmark = pytest.mark.slow

# Data, a training, a figure and a table: every kind of out, all of them quick.
SAMPLE = ("pod_targets", "rates_train@trained", "fig1", "claims")
# Of every stage and a dep of none: the launcher, and the log that it writes.
LAUNCHER = (pipeline.LAUNCHER, "src/attnrate/ops/runlog.py", "src/attnrate/ops/live.py")


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """A folder with a file for each stage: what it opened (tests/tracing)."""
    return tmp_path_factory.mktemp("opened")


@pytest.fixture(scope="module")
def smoke(workspace, opened):
    """The workspace after `dvc exp run $(python -m attnrate.ops.profile smoke)`."""
    source, tracing = workspace.path / "src", ROOT / "tests" / "tracing"
    env = {"PYTHONPATH": f"{source}{os.pathsep}{tracing}", "ATTNRATE_TRACE": str(opened), "ATTNRATE_CORES": "2"}
    options = workspace.ok("python", "-m", "attnrate.ops.profile", "smoke", env=env).split()
    # Stages without parameters are up to date in any profile, and would leave no trace. And all of dvc.lock is read and
    # written for each stage.
    (workspace.path / "dvc.lock").unlink()
    workspace.ok("git", "commit", "--quiet", "--all", "--message", "No stage has run")
    workspace.ok("dvc", "exp", "run", *options, env=env, timeout=1200)
    return workspace


@pytest.fixture(scope="module")
def stages(smoke):
    return pipeline.stages(smoke.path)


def hashes(workspace, *names: str) -> dict[str, list]:
    lock = yaml.safe_load((workspace.path / "dvc.lock").read_text())["stages"]
    return {name: lock[name]["outs"] for name in names or lock}


def test_every_stage_ran_and_every_out_is_there(smoke, stages):
    assert {s.name for s in stages} <= set(hashes(smoke))
    assert [out for s in stages for out in s.outs if not (smoke.path / out).exists()] == []


def test_nothing_but_declared_outs_was_written(smoke, stages):
    outs = ["params.yaml", "dvc.lock", *(out for s in stages for out in s.outs)]
    changed = [line[3:] for line in smoke.ok("git", "status", "--porcelain", "-uall").splitlines()]
    assert [c for c in changed if not any(covers(out, c) for out in outs)] == []
    known = [c for c in changed if c.startswith("reports/results/")]
    assert known, "the results at this profile differ from the committed ones"


def test_stages_read_what_they_declare_and_write_their_outs(smoke, stages, opened):
    """Everything opened in the tree, modules included; places of their own: .scratch/ (drafts, downloads), the log."""
    root, wrong, read = smoke.path.resolve(), [], defaultdict(set)
    for stage in stages:
        allowed = {
            "r": [*stage.deps, *stage.outs, "params.yaml", ".scratch", *LAUNCHER],
            "w": [*stage.outs, ".scratch", ".runs.jsonl"],
        }
        for line in set((opened / stage.name).read_text().splitlines()):
            kind, _, path = line.partition("\t")
            if not path.startswith(f"{root}/") or (kind == "w" and "/__pycache__/" in path):
                continue
            name = re.sub(r"__pycache__/(\w+)\.cpython-.*", r"\1.py", path.removeprefix(f"{root}/"))
            read[stage.name] |= {name} if kind == "r" else set()
            if not (name.endswith("/__init__.py") or any(covers(a, name) for a in allowed[kind])):
                wrong.append((stage.name, kind, name))
    assert wrong == []
    every = defaultdict(set)  # what the items of a matrix, which have one list of deps, open together
    for stage in stages:
        every[stage.script] |= read[stage.name]
    unread = [(s.name, dep) for s in stages for dep in s.data if not any(covers(dep, f) for f in every[s.script])]
    assert unread == [], "deps that the stage does not open"


def test_weights_show_in_the_trace(smoke, stages, opened):
    """Otherwise the test above would prove less than it says."""
    for name, ends in (("vit_spectra", ".safetensors"), ("translation_bleu", ".safetensors .model .npz")):
        read = (opened / name).read_text()
        assert all(re.search(rf"^r\t.*/data/.*{re.escape(end)}$", read, re.MULTILINE) for end in ends.split())


def test_every_claim_is_judged_and_says_the_profile(smoke):
    rows = json.loads((smoke.path / "reports/claims.json").read_text())
    criteria = tomllib.loads((ROOT / "src/attnrate/report/claims/criteria.toml").read_text(encoding="utf-8"))
    assert [row["id"] for row in rows] == list(criteria)
    assert {row["profile"] for row in rows} == {"smoke"}
    assert all(row["verdict"] and (row["why"] or row["needs"]) for row in rows)


def test_another_corpus_has_the_same_trainings_and_tests(smoke):
    """translation_beside on the corpus of the stages that it stands for, and half the steps."""
    results, keys = smoke.path / "reports" / "results", ["variant", "seed"]
    beside = results / "translation_beside" / "toy"
    assert (beside / "changed.csv").read_bytes() == (results / "translation_bleu" / "changed.csv").read_bytes()
    same = {"bleu.csv": ("bleu", "gate/seed0"), "losses.csv": ("main/all", "permuted/all", "gate/seed0")}
    for name, folders in same.items():
        parts = [pd.read_csv(results / f"translation_{folder}" / name, dtype={"seed": "Int64"}) for folder in folders]
        found = pd.read_csv(beside / name, dtype={"seed": "Int64"})
        pd.testing.assert_frame_equal(found.set_index(keys), pd.concat(parts).set_index(keys), check_exact=True)
    losses = pd.read_csv(beside / "losses.csv").set_index("variant")
    for name in ("continued", "permuted"):
        assert losses.steps[f"{name}-half"] == losses.steps[name] // 2
        assert losses.dev_loss[f"{name}-half"] != losses.dev_loss[name]


def test_the_table_of_rates_is_exactly_the_grid(smoke):
    p = smoke.params()["rates"]
    table = pd.read_csv(smoke.path / "reports/results/rates_table/rates.csv", dtype={"rank": str, "seed": "Int64"})
    assert list(table.columns) == ["pairing", "alpha", "rank", "mh", "seed", "estimator", "mse"]
    groups = {
        "pod": p["constructive"],
        "constructive": p["constructive"],
        "free-kernel": p["free_kernel"],
    } | {name: p["train"] | recipe for name, recipe in p["recipes"].items()}
    grid = {
        (pairing, alpha, str(rank), mh, seed, estimator)
        for estimator, own in groups.items()
        for group in [p["target"] | own]
        for pairing in group["pairings"]
        for alpha in group["alphas"]
        for rank in group["ranks"]
        for mh in group["mh"]
        for seed in group.get("seeds", [-1])
    }
    found = list(table.fillna({"seed": -1}).drop(columns="mse").itertuples(index=False, name=None))
    assert len(found) == len(set(found)) and set(found) == grid
    assert (table.mse >= 0).all()


def test_a_second_run_has_nothing_to_do(smoke):
    output = smoke.ok("dvc", "repro")
    assert "Running stage" not in output and "up to date" in output


def test_running_again_gives_the_same_bytes(smoke):
    before = hashes(smoke, *SAMPLE)
    output = smoke.ok("dvc", "repro", "--force", "--single-item", *SAMPLE)
    assert sorted(re.findall(r"Running stage '([^']+)'", output)) == sorted(SAMPLE)
    assert hashes(smoke, *SAMPLE) == before


def test_without_data_and_cache_nothing_is_to_do(smoke, tmp_path):
    """As in a clone, where weights are neither here nor in a cache."""
    away = [p for p in (smoke.path / "data").iterdir() if p.name != "targets"] + [smoke.path / ".dvc" / "cache"]
    for path in away:
        shutil.move(path, tmp_path / path.name)
    try:
        assert smoke.planned() == (set(), set())
        smoke.edit("src/attnrate/report/fig_rates.py", '"C0"', '"C5"')
        assert smoke.planned() == ({"fig1"}, set())
    finally:
        for path in away:
            shutil.move(tmp_path / path.name, path)


def test_a_smaller_grid_leaves_no_stale_point_and_trains_nothing(smoke):
    """Last: it changes the workspace."""
    smoke.set("rates.constructive.mh", [1, 2])
    smoke.set("rates.free_kernel.mh", [1, 2])
    smoke.set("vit.grid.models", ["qk-1"])
    ran = set(re.findall(r"Running stage '([^']+)'", smoke.ok("dvc", "repro", "rates_table", "vit_table")))
    rates = {"rates_constructive", "rates_free_kernel", "rates_table"}
    assert ran == {"validate", *rates, "vit_spectra", "vit_table"}
    results = smoke.path / "reports" / "results"
    tables = [
        *(t for t in results.glob("rates_*/*.csv") if t.parent.name != "rates_exact"),
        *results.glob("vit_table/*.csv"),
        *results.glob("vit_spectra/*.csv"),
    ]
    heads = {t: set(pd.read_csv(t).mh) for t in tables if "mh" in pd.read_csv(t, nrows=0).columns}
    assert {results / f"{t}.csv" for t in ("rates_table/rates", "rates_table/pod", "vit_table/vit")} <= set(heads)
    vit, width = smoke.params()["vit"], smoke.params()["rates"]["constructive"]["width_rank"]
    others = {vit["main"]["mh"], *vit["beside"]["mh"]}  # of no grid
    for table, found in heads.items():
        assert found <= ({1, *others} if table.parent.name.startswith("vit") else {1, 2, width}), table
