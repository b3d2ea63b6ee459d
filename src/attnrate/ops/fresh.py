"""`make fresh`, and the end of `make repro`: is the code of published results still that of the tree?

The published part of dvc.lock has the hashes of a stage's code. What has changed since is named, and is no failure: a
night's run is not repeated for every edit. `--write` puts it into reports/published/state.json, with what each profile
costs, and makes the page anew where that changed. A branch whose commit is unknown or has other code is named too.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from dvc.repo import Repo
from dvc_data.hashfile.build import build

from attnrate.core import files
from attnrate.ops import costs, runlog
from attnrate.report.published import ROOT, SIZES, STATE, branches, state


def hashes(paths: set[str], tree: str | None = None) -> dict[str, str | None]:
    """The hash that DVC gives a file or folder of the tree, or of a copy of another one; None of what is gone."""
    found = {}
    with Repo() as repo:
        for path in sorted(paths):
            full = str(Path(tree or repo.root_dir) / path)
            if Path(full).exists():
                _, _, made = build(repo.cache.local, full, repo.fs, "md5", dry_run=True, ignore=repo.dvcignore)
                found[path] = made.hash_info.value
            else:
                found[path] = None
    return found


def code(stage: dict) -> dict[str, str]:
    """The hashes of the code that a stage of a lock ran."""
    deps = {dep["path"]: dep["md5"] for dep in stage.get("deps", [])}
    return {path: md5 for path, md5 in deps.items() if path.startswith(("src/", "stages/"))}


def changed() -> dict[str, dict[str, list[str]]]:
    """Profile → branch → the stages whose code is another now."""
    there = {name: found for name in SIZES if (found := branches(name))}
    now = hashes({path for found in there.values() for b in found for s in b.lock.values() for path in code(s)})
    result = {}
    for name, found in there.items():
        for b in found:
            if old := [n for n, s in b.lock.items() if any(now[path] != md5 for path, md5 in code(s).items())]:
                result.setdefault(name, {})[b.folder.name] = old
    return result


def untraced() -> dict[str, str]:
    """PROFILE/BRANCH → why the commit that it names is not where its code can be read."""
    found = {}
    for branch in (b for name in SIZES for b in branches(name)):
        wanted = {path: md5 for stage in branch.lock.values() for path, md5 in code(stage).items()}
        with tempfile.TemporaryDirectory() as tree:
            command = ["git", f"--work-tree={tree}", "checkout", "--quiet", branch.commit, "--", "src", "stages"]
            own = os.environ | {"GIT_INDEX_FILE": f"{tree}/index"}  # the repository's own stays as it is
            if subprocess.run(command, env=own, capture_output=True).returncode:
                found[str(branch.folder.relative_to(ROOT))] = f"commit {branch.commit[:7]} is not in this repository"
                continue
            there = hashes(set(wanted), tree)
        if other := sorted(path for path, md5 in wanted.items() if there[path] != md5):
            found[str(branch.folder.relative_to(ROOT))] = f"commit {branch.commit[:7]} has another {other[0]}"
    return found


def cost() -> dict[str, dict]:
    """What the profiles take that costs.json knows, in two digits: estimates hold no more."""
    return files.significant(costs.estimated().get("profiles", {}), 2)


def refresh() -> bool:
    """state.json and the cost table of each published profile, anew where something changed; whether it did."""
    texts = {ROOT / STATE: json.dumps({"changed": changed(), "costs": cost()}, indent=2, sort_keys=True) + "\n"}
    order = costs.branches()
    for name in SIZES:
        if found := branches(name):
            runs = costs.in_order({n: run for b in found for n, run in runlog.unpacked(b.runs).items()}, order)
            lines = [f"# Cost of the {name} profile", "", *costs.measured(runs, order)]
            texts[ROOT / name / "costs.md"] = "\n".join(lines) + "\n"
    new = {path: text for path, text in texts.items() if not path.exists() or path.read_text("utf-8") != text}
    for path, text in new.items():
        files.write_text(path, text)
    return bool(new)


def main(argv: list[str] | None = None) -> None:
    now = changed()
    for profile, found in now.items():
        for branch, names in found.items():
            print(f"published {profile}, {branch}: the code of {', '.join(names)} has changed since")
    for branch, why in untraced().items():
        print(f"published {branch}: {why}")
    if "--write" in (sys.argv[1:] if argv is None else argv):
        if refresh():
            redraw = ["repro", "--quiet", "--allow-missing", "fig_ledger", "page"]  # and train nothing for it
            subprocess.run([sys.executable, "-m", "dvc", *redraw], check=True)
    elif now != state()["changed"]:
        print("the page does not say so yet: `make repro`")


if __name__ == "__main__":
    main()
