"""Figure 2's singular values are those of the main model, whatever it started from, as the verdict's are."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from attnrate.core import files
from attnrate.core.params import read
from attnrate.spectra.measure import measure
from attnrate.vit import model
from attnrate.vit.view import View, load
from tests.conftest import ROOT
from tests.vit.test_train import prepare

START = "vit_base_patch16_224.augreg_in21k"  # its weights are made up here: what counts is how it sees images


def test_figure_2_and_its_verdict_are_of_the_main_model():
    """Not of the model of the sweep with the same head size."""
    prepare(Path(), epochs=1)
    p = read("params.yaml")
    p.vit.grid.update(models=["qk-16"])
    p.vit.main.update(mh=16, start=START, seeds=[0], parts=["seed0"])
    p.vit.spectra.update(images=8)
    files.write_json("params.yaml", p)
    made = {name: model.build("qk", 16, seed=seed, **p.vit.model) for name, seed in (("sweep", 1), ("main", 2))}
    for name, path in (("sweep", "vit_sweep/qk-16/original_seed0"), ("main", "vit_main/seed0/main_seed0")):
        Path("data", path).parent.mkdir(parents=True)
        files.write_weights(Path("data", f"{path}.safetensors"), made[name].state_dict())
    subprocess.run([sys.executable, ROOT / "stages/vit_spectra.py"], check=True)
    images = torch.from_numpy(load(Path("data/vit_images/images.npz"))["test_x"][:8])
    expected = measure(made["main"].eval(), [View(32, START)(images)], p.vit.spectra.normalisation, True)
    shown = files.read_npz(Path("data/vit_spectra/main.npz"))
    judged = pd.read_csv("reports/results/vit_spectra/main_values.csv").query("state == 'trained' and centred")
    assert np.allclose(shown["first"], expected.violins["first"], rtol=1e-4)
    assert np.allclose(judged["mean"], expected.spectra["mean"], rtol=1e-4)
    null = files.read_npz(Path("data/vit_spectra/untrained.npz"))
    assert null["first"].shape == shown["first"].shape and not np.allclose(null["first"], shown["first"], rtol=1e-2)
    assert not np.allclose(shown["first"], files.read_npz(Path("data/vit_spectra/qk-16.npz"))["first"], rtol=1e-2)
