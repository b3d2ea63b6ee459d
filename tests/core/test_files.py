"""Files that are whole or not there, and the same bytes for the same content."""

import json
import math
import resource

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors import safe_open

from attnrate.core import files


def test_a_failed_write_leaves_the_old_file_and_no_draft(tmp_path):
    (tmp_path / "out.txt").write_text("old")
    with pytest.raises(RuntimeError), files.atomic("out.txt") as draft:
        draft.write_text("half")
        raise RuntimeError
    assert (tmp_path / "out.txt").read_text() == "old"
    assert list(files.SCRATCH.iterdir()) == []


def test_nothing_is_visible_before_the_block_ends(tmp_path):
    with files.atomic("deep/out.txt") as draft:
        draft.write_text("new")
        assert not (tmp_path / "deep").exists()
    assert (tmp_path / "deep/out.txt").read_text() == "new"


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    for name in ("a", "b"):
        with files.atomic("folder") as draft:
            draft.mkdir()
            (draft / name).touch()
    assert [p.name for p in (tmp_path / "folder").iterdir()] == ["b"]
    with pytest.raises(RuntimeError), files.atomic("folder") as draft:
        draft.mkdir()
        raise RuntimeError
    assert [p.name for p in (tmp_path / "folder").iterdir()] == ["b"]
    assert list(files.SCRATCH.iterdir()) == []


def test_drafts_of_a_killed_run_go_when_the_out_is_written_again(tmp_path):
    for name in ("a-out.txt.draft1", "a-out.txt.draft22", "b-out.txt.draft1"):
        files.SCRATCH.mkdir(exist_ok=True)
        (files.SCRATCH / name).write_text("half")
    files.write_text("a/out.txt", "whole")
    assert [p.name for p in files.SCRATCH.iterdir()] == ["b-out.txt.draft1"]


def test_weights_that_do_not_fit_are_an_oserror(tmp_path):
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
    try:
        with pytest.raises(OSError, match=r"w\.safetensors"):
            files.write_weights("w.safetensors", {"w": torch.zeros(1000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    files.write_weights("w.safetensors", {"w": torch.zeros(1000)}, state="7")
    with safe_open("w.safetensors", "pt") as f:
        assert f.metadata() == {"state": "7"} and f.get_tensor("w").shape == (1000,)


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        (1 / 3, 0.333333),
        (123456789.0, 123457000.0),
        (-2.5e-17 / 3, -8.33333e-18),
        (12345678, 12345678),
        (np.float32(0.1), 0.1),
        (np.int64(7), 7),
        (np.array([[1 / 3, 2.0]]), [[0.333333, 2.0]]),
        ({"a": (math.pi, "x", None, True)}, {"a": [3.14159, "x", None, True]}),
        (float("nan"), None),
        (float("-inf"), None),
    ],
)
def test_floats_keep_six_significant_digits(value, rounded):
    assert files.significant(value) == rounded
    json.dumps(files.significant(value), allow_nan=False)  # plain Python throughout


def test_json_does_not_depend_on_the_order_of_keys(tmp_path):
    files.write_json("a.json", {"b": np.float64(1 / 3), "α": [1, 2]})
    files.write_json("b.json", {"α": [1, 2], "b": 1 / 3 + 1e-12})
    text = (tmp_path / "a.json").read_bytes()
    assert text == (tmp_path / "b.json").read_bytes()
    assert text.endswith(b"\n") and "α".encode() in text
    assert files.read_json("a.json") == {"b": 0.333333, "α": [1, 2]}


def test_csv_has_six_digits_and_unix_lines_everywhere(tmp_path):
    table = pd.DataFrame({"mse": [1 / 3, 2e-9], "seed": pd.array([0, None], dtype="Int64")})
    files.write_csv("t.csv", table)
    assert (tmp_path / "t.csv").read_bytes() == b"mse,seed\n0.333333,0\n2e-09,\n"
