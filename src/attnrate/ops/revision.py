"""`attnrate revision PROFILE`: a commit that has a published profile's files where the workspace has its own.

DVC compares revisions, not folders: `dvc metrics diff $(attnrate revision desk)`, `dvc plots diff`, `dvc params diff`,
and `git diff` of reports/tables. What is not published is as in HEAD. The commit is a child of HEAD that no branch
names, and the same at every call.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import yaml

from attnrate.core import files
from attnrate.core.errors import UserError
from attnrate.ops import verify
from attnrate.ops.profile import overlay
from attnrate.ops.publish import copy
from attnrate.report.claims.ledger import REPRODUCED, counts
from attnrate.report.published import ROOT, SIZES, branches

WHO = {f"GIT_{who}_{what}": "attnrate" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
WHEN = {f"GIT_{who}_DATE": "2000-01-01T00:00:00Z" for who in ("AUTHOR", "COMMITTER")}


def lay_out(profile: str, to: Path) -> set[str]:
    """The published files in their places below `to`; the paths that they stand for."""
    found, taken = branches(profile), {"reports/metrics/summary.json", "params.yaml"}
    if not found:
        there = ", ".join(name for name in SIZES if branches(name)) or "no other profile"
        raise UserError(f"nothing of {profile} is published; {there} is")
    summary, rows = (json.loads(verify.git("show", f"HEAD:reports/{n}.json")) for n in ("metrics/summary", "claims"))
    claims = {row["id"]: row for row in rows}
    p = overlay(verify.committed_params("HEAD"), {"profile": profile}, ROOT)
    for branch in found:
        for kind in ("results", "tables", "figures", "plots"):
            for path in (branch.folder / kind).glob("*"):
                copy(path, to / "reports" / kind / path.name)
                taken.add(f"reports/{kind}/{path.name}")
        summary |= files.read_json(branch.folder / "metrics.json")
        claims |= {row["id"]: row for row in branch.claims}
        p = overlay(
            p, yaml.load((branch.folder / "params.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader), branch.folder
        )
    summary["reproduced"] = counts([row for row in claims.values() if not row["ours"]])[REPRODUCED]
    files.write_json(to / "reports/metrics/summary.json", summary, digits=4)
    (to / "params.yaml").write_text(yaml.safe_dump(p, sort_keys=False), encoding="utf-8")
    return taken


def main(profile: str) -> str:
    """The commit's hash."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        tree.mkdir()
        taken = lay_out(profile, tree)
        env = os.environ | WHO | WHEN | {"GIT_INDEX_FILE": str(Path(folder, "index"))}

        def git(*args: str) -> str:
            done = subprocess.run(["git", *args], env=env, check=True, capture_output=True, text=True)
            return done.stdout.strip()

        git("read-tree", "HEAD")
        git("--work-tree", str(tree), "add", "--all", "--force", "--", *sorted(taken))
        return git("commit-tree", git("write-tree"), "-p", "HEAD", "-m", f"Published results of the {profile} profile")
