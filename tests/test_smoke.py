"""The whole DAG at the smoke profile, in a copy of the repository, without network."""

import json
import os
import re
import shutil
import time

import pandas as pd
import pytest
import yaml

from tests import pipeline
from tests.conftest import ROOT
from tests.report.test_claims import KEYS

pytestmark = pytest.mark.slow

# Data, a training, a figure and a table: every kind of out, all of them quick.
SAMPLE = ("pod_targets", "rates_train@trained", "fig1", "claims")


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """A folder with a file for each stage: what it opened (tests/tracing)."""
    return tmp_path_factory.mktemp("opened")


@pytest.fixture(scope="module")
def smoke(workspace, opened):
    """The workspace after `dvc exp run $(python -m attnrate.ops.profile smoke)`, all but its first stage over two workers."""
    source, tracing = workspace.path / "src", ROOT / "tests" / "tracing"
    env = {"PYTHONPATH": f"{source}{os.pathsep}{tracing}", "ATTNRATE_TRACE": str(opened)}
    options = workspace.ok("python", "-m", "attnrate.ops.profile", "smoke", env=env).split()
    workspace.ok("dvc", "exp", "run", "--single-item", "validate", *options, env=env)
    output = workspace.ok("python", "-m", "attnrate.ops.cluster", "--workers", "2", env=env)
    assert f"{len(pipeline.stages(workspace.path)) - 1} stages run, 1 up to date" in output
    return workspace


@pytest.fixture(scope="module")
def params(smoke):
    return yaml.safe_load((smoke.path / "params.yaml").read_text())


def hashes(workspace, *names: str) -> dict[str, list]:
    lock = yaml.safe_load((workspace.path / "dvc.lock").read_text())["stages"]
    return {name: lock[name]["outs"] for name in names or lock}


def test_every_stage_ran_and_every_out_is_there(smoke):
    stages = pipeline.stages(smoke.path)
    assert {s.name for s in stages} <= set(hashes(smoke))
    missing = [out for s in stages for out in s.outs if not (smoke.path / out).exists()]
    assert missing == []


def test_nothing_but_declared_outs_was_written(smoke):
    outs = [out for s in pipeline.stages(smoke.path) for out in s.outs]
    allowed = {"params.yaml", "dvc.lock"}
    changed = [line[3:] for line in smoke.ok("git", "status", "--porcelain", "-uall").splitlines()]
    stray = [
        c
        for c in changed
        if c not in allowed and not c.endswith("/.gitignore") and not any(c == o or c.startswith(f"{o}/") for o in outs)
    ]
    assert stray == []


def test_stages_read_what_they_declare_and_write_their_outs(smoke, opened):
    """Everything opened in the tree, modules included; places of their own: .scratch/ (drafts, downloads), the log."""
    root, wrong, count = smoke.path.resolve(), [], 0
    for stage in pipeline.stages(smoke.path):
        allowed = {
            "r": [*stage.deps, *stage.outs, "params.yaml", ".scratch"],
            "w": [*stage.outs, ".scratch", ".timings.jsonl"],
        }
        for line in set((opened / stage.name).read_text().splitlines()):
            kind, _, path = line.partition("\t")
            if not path.startswith(f"{root}/") or (kind == "w" and "/__pycache__/" in path):
                continue
            name = re.sub(r"__pycache__/(\w+)\.cpython-.*", r"\1.py", path.removeprefix(f"{root}/"))
            count += 1
            if not (name.endswith("/__init__.py") or any(name == a or name.startswith(f"{a}/") for a in allowed[kind])):
                wrong.append((stage.name, kind, name))
    assert wrong == [] and count > 1000


def test_claims_have_the_documented_keys_and_say_the_profile(smoke):
    rows = json.loads((smoke.path / "reports/claims.json").read_text())
    assert rows and all(sorted(row) == sorted(KEYS) for row in rows)
    assert {row["profile"] for row in rows} == {"smoke"}
    assert len({row["id"] for row in rows}) == len(rows)


def test_the_table_of_rates_is_exactly_the_grid(smoke, params):
    p = params["rates"]
    table = pd.read_csv(smoke.path / "reports/results/rates.csv", dtype={"rank": str, "seed": "Int64"})
    assert list(table.columns) == ["alpha", "rank", "mh", "seed", "estimator", "mse"]
    heads = {
        "pod": p["mh"],
        "constructive": p["mh"],
        "free-kernel": p["mh"],
        "paper": p["train_mh"],
        "trained": p["train_mh"],
    }
    grid = {
        (alpha, str(rank), mh, seed, estimator)
        for alpha in p["alphas"]
        for rank in p["ranks"]
        for estimator, sizes in heads.items()
        for mh in sizes
        for seed in ((-1,) if estimator in ("pod", "constructive") else p["seeds"])
    }
    found = list(table.fillna({"seed": -1}).drop(columns="mse").itertuples(index=False, name=None))
    assert len(found) == len(set(found)) and set(found) == grid
    assert (table.mse >= 0).all()


def test_a_second_run_has_nothing_to_do_and_says_so_quickly(smoke):
    start = time.perf_counter()
    output = smoke.ok("dvc", "repro")
    assert time.perf_counter() - start < 8
    assert "Running stage" not in output and "up to date" in output


def test_running_again_gives_the_same_bytes(smoke):
    before = hashes(smoke, *SAMPLE)
    output = smoke.ok("dvc", "repro", "--force", "--single-item", *SAMPLE)
    assert sorted(re.findall(r"Running stage '([^']+)'", output)) == sorted(SAMPLE)
    assert hashes(smoke, *SAMPLE) == before


def test_a_smaller_grid_leaves_no_stale_point_and_trains_nothing(smoke, params):
    """Last: it changes the workspace."""
    assert 3 in params["rates"]["mh"]
    changed = params | {"rates": params["rates"] | {"mh": [1, 2]}}
    (smoke.path / "params.yaml").write_text(yaml.safe_dump(changed, sort_keys=False))
    output = smoke.ok("dvc", "repro")
    assert "Running stage 'rates_table'" in output and "Running stage 'rates_train" not in output
    results = smoke.path / "reports" / "results"
    tables = [*results.glob("rates*.csv"), *results.glob("rates/*.csv")]
    heads = {t.name: set(pd.read_csv(t).mh) for t in tables if "mh" in pd.read_csv(t, nrows=0).columns}
    assert {"rates.csv", "pod.csv", "constructive.csv", "free-kernel.csv", "trained.csv"} <= set(heads)
    assert all(found <= {1, 2} for found in heads.values()), heads


def test_in_a_clone_without_cache_an_edit_concerns_only_what_depends_on_it(smoke):
    """After the last: nothing is stale, and weights are neither here nor in a cache."""
    shutil.rmtree(smoke.path / ".dvc" / "cache")
    stages = {s.name: s for s in pipeline.stages(smoke.path)}
    for out in (out for s in stages.values() for out, options in s.outs.items() if options.get("cache", True)):
        path = smoke.path / out
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert smoke.planned() == set()

    smoke.edit("src/attnrate/report/fig_rates.py", '"C0"', '"C5"')
    assert smoke.planned() == {"fig1"}
    smoke.edit("src/attnrate/report/fig_rates.py", '"C5"', '"C0"')

    changed = yaml.safe_load((smoke.path / "params.yaml").read_text())
    changed["rates"]["seeds"] = [0, 1, 2]
    (smoke.path / "params.yaml").write_text(yaml.safe_dump(changed, sort_keys=False))
    touched = {name for name, s in stages.items() if "rates.seeds" in s.params} | {"validate"}
    assert {"rates_train@paper", "rates_train@trained", "rates_free_kernel"} < touched
    planned = smoke.planned()
    assert touched <= planned and not planned & {"pod_targets", "rates_pod", "rates_constructive", "mixing_rank"}
