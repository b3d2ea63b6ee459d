"""What an edit of the committed tree makes stale, and what it must not: `dvc repro --dry` in a clone without cache.

With --dry DVC does not show what would follow from a stage that it would run.
"""

import pytest

from attnrate.core import params
from tests import pipeline
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

STAGES = {s.name: s for s in pipeline.stages(ROOT)}
ALWAYS = {"validate", "page"}  # read the whole of params.yaml and the schemas
LINEAR, MIXING, EXAMPLES, SWEEP = (
    {name for name in STAGES if name.startswith(f"{script}@")}
    for script in ("linear_train", "linear_mixing", "examples_train", "vit_sweep")
)
LARGE = {name for name, s in STAGES.items() if "src/attnrate/large" in s.deps}
MODELS = params.read(ROOT / "params.yaml").vit.grid.models


@pytest.fixture(autouse=True)
def clean(workspace):
    yield
    workspace.restore()


@pytest.fixture(scope="module")
def untouched(workspace):
    """What the command of the documents says of the committed tree."""
    return workspace.ok("dvc", "repro", "--dry", "--allow-missing")


@pytest.fixture(scope="module")
def stale(workspace, untouched):
    """The stages that the committed lock leaves to run; none in a released tree."""
    return workspace.planned()[0] if "Running stage" in untouched else set()


def alone(edits: list) -> set[str]:
    """The stages that the edits of a group concern, each one of them."""
    named = [stage for *_, stages in edits for stage in stages]
    assert len(named) == len(set(named)), "what one edit would fail to do, another one hides"
    return set(named)


def check(workspace, stale: set[str], expected: set[str]) -> None:
    """The expected stages would run and no others; what lies behind them may follow."""
    planned, behind = workspace.planned()
    assert planned - stale <= expected <= planned | behind


def test_in_a_clone_without_cache_nothing_is_to_do(untouched):
    assert "Running stage" not in untouched and "up to date" in untouched


# Of a group of edits no two concern the same stage, so that each shows by itself.


@pytest.mark.parametrize(
    "edits",
    [
        [
            # What no result can depend on: messages of the launcher and of the tools.
            ("stages/launcher.py", "is missing; `dvc repro", "is not there; `dvc repro", set()),
            ("src/attnrate/ops/profile.py", "is not a key of params.yaml", "is no key of params.yaml", set()),
            ("src/attnrate/ops/runlog.py", "GB peak", "GB at most", set()),
            ("src/attnrate/cli.py", "interrupted, nothing was written", "interrupted", set()),
            ("src/attnrate/report/fig_vit.py", '"C0"', '"C5"', {"fig_vit"}),
            ("src/attnrate/report/fig_rates.py", '"C0"', '"C5"', {"fig1"}),
            (
                # A criterion of a claim retrains nothing; two figures and the page show a criterion.
                "src/attnrate/report/claims/criteria.toml",
                "limits = { mse = 1e-6 }",
                "limits = { mse = 1e-5 }",
                {"claims", "fig_examples", "fig_ledger", "page"},
            ),
        ],
        [
            # Descriptions and rules of parameters.
            ("src/attnrate/schemas/vit.py", "passes over the training images", "epochs", ALWAYS),
            ("src/attnrate/schemas/check.py", "is not a known parameter", "is unknown", set()),
        ],
        [("src/attnrate/large/loop.py", "history: int = 50", "history: int = 51", LARGE)],
    ],
    ids=["messages, figures, criteria", "schemas", "large loop"],
)
def test_an_edit_of_files(workspace, stale, edits):
    for file, old, new, _ in edits:
        workspace.edit(file, old, new)
    check(workspace, stale, alone(edits))


@pytest.mark.parametrize(
    "edits",
    [
        [
            ("rates.recipes.trained.lr", 0.005, {"rates_train@trained"}),
            ("rates.free_kernel.seeds", [0, 1, 2], {"rates_free_kernel"}),
            ("linear.recipes.plain.lr", 0.005, {"linear_train@plain"}),
            ("examples.tasks.mass.steps", 1600, {"examples_train@mass"}),
            ("vit.spectra.images", 500, {"vit_spectra", "fig_vit"}),
            ("translation.decode.beams", 5, {"translation_bleu"}),
        ],
        [
            ("mh", 8, LINEAR | EXAMPLES),
            # A new head size trains a model of its own, and no other anew.
            ("vit.grid.models", [*MODELS, "qk-3"], {"vit_sweep@qk-3", "vit_spectra", "vit_table"}),
            # Each recipe belongs to the trainings that follow it.
            ("vit.recipes.muon.lr", 0.003, {"vit_beside@all", "vit_main@all", "vit_permuted@all"}),
        ],
        [
            # Mixed targets have a head size of their own.
            ("linear.mixing.mh", 8, MIXING | {"linear_rnn"}),
            ("vit.recipes.adamw.lr", 0.003, SWEEP),
            ("vit.beside.seeds", [0], {"vit_beside@all", "vit_table", "fig_vit"}),
        ],
    ],
    ids=["one each", "head sizes", "recipes"],
)
def test_an_edit_of_parameters(workspace, stale, edits):
    for key, value, _ in edits:
        workspace.set(key, value)
    check(workspace, stale, alone(edits) | ALWAYS)


def test_the_trainings_of_the_large_loop_are_known():
    """Otherwise the test of its edit would prove less than it says."""
    assert {"vit_main@all", "translation_main@all"} <= LARGE and "vit_spectra" not in LARGE
