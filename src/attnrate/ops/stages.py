"""The stages of dvc.yaml as DVC sees them: what each needs, and which want a GPU."""

import shutil
import tempfile
from pathlib import Path

import yaml
from dvc.exceptions import DvcException
from dvc.repo import Repo, lock_repo

from attnrate.core.errors import UserError


def plan(root: Path, targets: list[str], profile: str) -> tuple[dict[str, set[str]], set[str]]:
    """The targets (or all stages) and what they need, each with its direct upstream; those whose `meta` wants a GPU.

    Only the paper profile's models are large enough for one.
    """
    repo = Repo(str(root), _wait_for_lock=True)
    with repo, lock_repo(repo):
        try:
            todo = [s for t in targets for s in repo.stage.collect(t)] if targets else list(repo.index.stages)
        except DvcException as e:
            raise UserError(str(e)) from None
        found, gpu = {}, set()
        while todo:
            stage = todo.pop(0)
            if stage.name not in found:
                upstream = list(repo.index.graph.successors(stage))
                found[stage.name] = {s.name for s in upstream}
                todo += upstream
                if profile == "paper" and (stage.meta or {}).get("gpu"):
                    gpu.add(stage.name)
    return found, gpu


def expanded(root: Path, content: dict) -> tuple[dict[str, set[str]], set[str]]:
    """The same of a tree's dvc.yaml with other parameters."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(root / "dvc.yaml", folder)
        (Path(folder) / "params.yaml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
        (Path(folder) / ".dvc").mkdir()
        (Path(folder) / ".dvc" / "config").write_text("[core]\n    no_scm = true\n", encoding="utf-8")
        return plan(Path(folder), [], content["profile"])


def out_of_date(root: Path, names: list[str], allow_missing: bool) -> set[str]:
    """Those of the names that `dvc repro` would run, each judged by itself."""
    repo = Repo(str(root), _wait_for_lock=True)
    with repo, lock_repo(repo):
        stages = {s.addressing: s for s in repo.index.stages}
        graph = repo.index.graph
        return {n for n in names if stages[n].changed(allow_missing, upstream=list(graph.successors(stages[n])))}
