"""Runs of a stage in parts, which train side by side."""

from pathlib import Path

import pytest

from attnrate.large import parts
from attnrate.schemas.check import split

RUNS = ["permuted_seed0", "permuted_seed1", "permuted-scratch_seed0", "permuted-scratch_seed1"]


@pytest.mark.parametrize("given", [["all"], ["seed0", "seed1"], RUNS, ["seed0", RUNS[1], RUNS[3]]])
def test_every_run_is_in_one_part_whose_folder_has_its_weights(given):
    split(given, RUNS, "parts")
    for run in RUNS:
        (part,) = (part for part in given if parts.holds(part, run))
        assert parts.weights(Path("data"), given, run) == Path(f"data/{part}/{run}.safetensors")


@pytest.mark.parametrize(
    "given", [["seed0"], ["all", "seed0"], ["seed0", "seed1", "seed2"], ["permuted_seed0", "seed0"]]
)
def test_a_run_in_none_or_two_and_a_part_without_runs_are_refused(given):
    with pytest.raises(ValueError, match=r"parts = .* should hold each of permuted_seed0, .* once, and nothing else"):
        split(given, RUNS, "parts")
