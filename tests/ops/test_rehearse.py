"""The rehearsal keeps the paper's sizes and shortens everything else."""

from attnrate.ops import rehearse
from attnrate.schemas import check as config
from tests.conftest import ROOT

SIZES = {
    "rates": ("n", "width", "tau", "terms"),
    "linear": ("n", "width", "tau"),
    "gallery": ("n", "width"),
    "vit": ("image_size", "patch", "width", "depth", "heads", "mlp_ratio", "main_mh", "readings"),
    "translation": ("width", "depth", "heads", "ff", "vocabulary", "max_tokens"),
}


def test_the_rehearsal_has_the_papers_sizes_and_two_steps():
    found = rehearse.rehearsal(ROOT)
    paper = config.read(ROOT / "profiles" / "paper.yaml")
    base = config.read(ROOT / "params.yaml")
    for section, keys in SIZES.items():
        for key in keys:
            assert found[section][key] == paper[section].get(key, base[section][key]), f"{section}.{key}"
    assert found["rates"]["steps"] == found["linear"]["steps"] == found["vit"]["max_steps"] == 2
    assert found["translation"]["max_steps"] == 2
    assert (found["vit"]["data"], found["translation"]["corpus"]) == ("toy", "toy")  # no network
