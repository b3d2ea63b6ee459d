"""Table 1's runs, side by side or in one stage."""

import subprocess
import sys
from pathlib import Path

import pandas as pd

from attnrate.core import files
from attnrate.core.params import read
from attnrate.schemas.vit import Vit
from attnrate.vit import model
from tests.conftest import ROOT
from tests.vit.test_train import prepare


def test_a_run_of_its_own_is_that_of_the_stage_with_all():
    """From the main model of its seed, which may be in a part of its own; the schema knows every run."""
    prepare(Path(), epochs=1)
    p = read("params.yaml")
    p.vit.main.update(mh=4, seeds=[0, 1], parts=["seed0", "seed1"])
    p.vit.permuted.update(seeds=[1], parts=["all"])
    p.vit.train.update(max_steps=2)
    files.write_json("params.yaml", p)
    for seed in p.vit.main.seeds:
        Path(f"data/vit_main/seed{seed}").mkdir(parents=True)
        weights = model.build("qk", 4, seed=seed, **p.vit.model).state_dict()
        files.write_weights(Path(f"data/vit_main/seed{seed}/main_seed{seed}.safetensors"), weights)
    results, data, alone = Path("reports/results/vit_permuted"), Path("data/vit_permuted"), "permuted_seed1"
    for part in ("all", alone):
        subprocess.run([sys.executable, ROOT / "stages/vit_permuted.py", part], check=True)
    every, one = (pd.read_csv(results / part / "scores.csv") for part in ("all", alone))
    known = Vit.model_construct(main=p.vit.main, permuted=p.vit.permuted).altered()
    assert list(every[["variant", "seed"]].itertuples(index=False, name=None)) == known
    pd.testing.assert_frame_equal(one, every.query("variant == 'permuted' and seed == 1").reset_index(drop=True))
    (weights,) = (data / alone).iterdir()
    assert weights.name == f"{alone}.safetensors"
    assert weights.read_bytes() == (data / "all" / weights.name).read_bytes()
