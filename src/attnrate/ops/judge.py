"""`attnrate judge PROFILE`: the claims of a published profile by today's criteria, from its published results.

A criterion that has become stricter needs no other night.
"""

import tempfile
from pathlib import Path

from attnrate.core import files, params
from attnrate.core.errors import UserError
from attnrate.ops.publish import of_branch
from attnrate.report.claims import ledger
from attnrate.report.claims.all import EVALUATORS
from attnrate.report.published import Branch, branches
from attnrate.report.table1 import NAMES


def elsewhere(results, rule):
    raise ledger.Undecided("the results of another branch")


def together(found: list[Branch], folder: Path) -> Path:
    """The results of all branches in one folder, as a workspace has them: some claims read those of another branch."""
    for path in (path for branch in found for path in (branch.folder / "results").iterdir()):
        (folder / path.name).symlink_to(path.resolve())
    return folder


def judged(branch: Branch, results: Path, profile: str, images: str) -> list[dict]:
    """The branch's claims, as the stage `claims` would have judged them."""
    criteria = ledger.read_criteria()
    own = {name: evaluate for name, evaluate in EVALUATORS.items() if of_branch(criteria[name], branch.lock)}
    rows = ledger.judge(dict.fromkeys(EVALUATORS, elsewhere) | own, results, profile, images)
    return [row for row in rows if row["id"] in own]


def main(profile: str) -> str:
    found = branches(profile)
    if not found:
        raise UserError(f"nothing of {profile} is published")
    images, moved = NAMES[params.read("params.yaml").vit.data.name], []
    with tempfile.TemporaryDirectory() as folder:
        results = together(found, Path(folder))
        try:
            judges = [(branch, judged(branch, results, profile, images)) for branch in found]  # before one is written
        except FileNotFoundError as e:
            missing = Path(e.filename).relative_to(results)
            raise UserError(f"{missing} is not published, which a claim reads; publish its branch first") from None
    for branch, rows in judges:
        before = {row["id"]: row["verdict"] for row in branch.claims}
        changed = {row["id"]: row["verdict"] for row in rows if row["verdict"] != before.get(row["id"])}
        moved += [f"{branch.name}: {name}, {before.get(name, 'new')} → {now}" for name, now in changed.items()]
        files.write_json(branch.folder / "claims.json", rows)
    return "\n".join(moved) or "no verdict moved"
