import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import yaml

from attnrate.laws.vit import fits
from attnrate.schemas import check as config
from attnrate.core import files
from attnrate.report import claims, claims_vit, fig_vit, figure, table1
from tests.conftest import ROOT

CRITERIA = claims.read_criteria()
SIZES = (1, 2, 4, 8, 16, 32)


@pytest.fixture
def results(tmp_path):
    """Results as the paper describes them: a power law, low rank, concentrated values, a small drop."""
    rows = [("qk", mh, 0, "original", 0.7 * mh**-0.27 + 1.05, 1.4, 0.5) for mh in SIZES]
    for seed in (0, 1, 2):
        rows += [
            ("qk", 32, seed, "continued", 1.0, 1.1, 0.6),
            ("qk", 32, seed, "permuted", 1.0, 1.1, 0.59 - 0.001 * seed),
            ("qk", 32, seed, "unadapted", 1.0, 1.1, 0.4),
        ]
    vit = pd.DataFrame(rows, columns=["reading", "mh", "seed", "variant", "train_loss", "test_loss", "test_acc"])
    cells = [(mh, layer, head, k) for mh in SIZES for layer in (1, 2) for head in (1, 2) for k in range(1, mh + 1)]
    spectra = pd.DataFrame(cells, columns=["mh", "layer", "head", "k"]).assign(reading="qk", n=9)
    spectra = spectra.assign(mean=2.0 * spectra.k**-2.0, sd=0.1 * spectra.k**-2.0)
    ranks = spectra[spectra.k == 1].assign(effective=2.0, energy90=1.5, energy99=3.0)
    for name, table in (("vit", vit), ("spectra", spectra), ("spectra_ranks", ranks)):
        files.write_csv(tmp_path / f"{name}.csv", table)
    files.write_json(tmp_path / "fits.json", fits(vit, spectra))
    return tmp_path


def change(results, name, **columns):
    table = pd.read_csv(results / f"{name}.csv")
    files.write_csv(results / f"{name}.csv", table.assign(**columns))


def verdict(results, name):
    return claims_vit.EVALUATORS[name](results, CRITERIA[name]["limits"]).verdict


def test_a_main_model_whose_head_size_the_sweep_has_stands_once(results, tmp_path):
    params = config.read(ROOT / "params.yaml")
    params["vit"] |= {"mh_sweep": [1, 8], "main_mh": 8}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params))
    tables = {
        name: pd.read_csv(results / f"{name}.csv").query("mh in (1, 8)") for name in ("vit", "spectra", "spectra_ranks")
    }
    for name, mh in (("qk_mh1", 1), ("qk_mh8", 8), ("main", 8), ("permuted", 8)):
        for folder, table in tables.items():
            files.write_csv(tmp_path / folder / f"{name}.csv", table[table.mh == mh].assign(n=len(name)))
    out = [f"--{flag}={tmp_path / flag}" for flag in ("out", "values-out", "ranks-out", "record")]
    flags = {"params": "params.yaml", "runs": "vit", "values": "spectra", "ranks": "spectra_ranks"}
    given = [f"--{flag}={tmp_path / path}" for flag, path in flags.items()]
    subprocess.run([sys.executable, ROOT / "stages" / "vit_table.py", *given, *out], cwd=tmp_path, check=True)
    values = pd.read_csv(tmp_path / "values-out")
    assert not values.duplicated(["reading", "mh", "layer", "head", "k"]).any()
    assert set(values.n[values.mh == 8]) == {len("main")} and set(values.mh) == {1, 8}


@pytest.mark.parametrize("name", claims_vit.EVALUATORS)
def test_results_as_the_paper_describes_them_are_reproduced(results, name):
    assert verdict(results, name) == claims.REPRODUCED


def test_results_that_contradict_are_not(results):
    change(results, "spectra", sd=lambda t: t["mean"])
    change(results, "spectra_ranks", energy99=30.0)
    change(
        results,
        "vit",
        train_loss=lambda t: 1 + 0.01 * t.mh,
        test_acc=lambda t: np.where(t.variant == "permuted", 0.5, 0.6),
    )
    for name in ("vit-concentration", "vit-low-rank", "vit-error-falls", "vit-permuted"):
        assert verdict(results, name) == claims.NOT


def test_an_open_exponent_cannot_be_tested(results):
    change(results, "vit", train_loss=lambda t: 1.4 - 0.02 * np.log(t.mh))
    vit, spectra = (pd.read_csv(results / f"{n}.csv") for n in ("vit", "spectra"))
    files.write_json(results / "fits.json", fits(vit, spectra))
    with pytest.raises(claims.Untestable, match="6 head sizes leave the exponent open"):
        verdict(results, "vit-exponent")
    files.write_json(results / "fits.json", fits(vit[vit.mh < 8], spectra))
    with pytest.raises(claims.Untestable, match="too few head sizes"):
        verdict(results, "vit-exponent")


def test_figures_are_the_same_bytes_twice(results, tmp_path):
    vit, spectra = (pd.read_csv(results / f"{n}.csv") for n in ("vit", "spectra"))
    values = np.random.default_rng(0).lognormal(size=(2, 30, 8)).astype(np.float32)
    for name in ("a", "b"):
        drawn = fig_vit.figure2(dict(zip(("first", "last"), values, strict=True)), "tokens", "test")
        figure.save(drawn, tmp_path / f"2{name}.svg", tmp_path / f"2{name}.png")
        drawn = fig_vit.figure3(vit, spectra, files.read_json(results / "fits.json"), "tokens", "test")
        figure.save(drawn, tmp_path / f"3{name}.svg", tmp_path / f"3{name}.png")
    for name in ("2{}.svg", "2{}.png", "3{}.svg", "3{}.png"):
        assert (tmp_path / name.format("a")).read_bytes() == (tmp_path / name.format("b")).read_bytes()


def test_table_1_says_data_seeds_spread_and_the_papers_numbers(results):
    vit = pd.read_csv(results / "vit.csv")
    sentences = pd.DataFrame({"corpus": "toy", "variant": ["original", "permuted"], "seed": 0, "bleu": [20.0, 19.0]})
    shown = table1.wide(table1.join(vit, 32, "cifar10", sentences))
    row = shown.loc["permuted"]
    assert row["CIFAR10 (accuracy)"] == "0.5890 [0.5880–0.5900] (n = 3)" and row["paper (accuracy)"] == "0.96"
    assert row["toy sentences, not WMT14 (BLEU)"] == "19.00 (n = 1)"
    assert "not CIFAR10" in table1.wide(table1.join(vit, 32, "toy", sentences)).columns[1]


def test_a_pretrained_main_model_is_table_1s_original():
    vit = pd.DataFrame(
        {"reading": "qk", "mh": 64, "seed": 0, "variant": ["original", "pretrained"], "test_acc": [0.5, 0.98]}
    )
    assert table1.cifar10(vit, 64).set_index("variant").value.to_dict() == {"original": 0.98}
