"""A running training in a tracker of accelerate's: DVCLive, TensorBoard or Weights & Biases, as `live` says.

stages/launcher.py hands over what the loop of the large models tells of its steps. No stage imports this, and a tracker
that fails is told and left: it cannot change a result.
"""

import importlib.util
import re
from pathlib import Path

from accelerate.tracking import LOGGER_TYPE_TO_CLASS, GeneralTracker

from attnrate.core.errors import UserError
from attnrate.core.params import read
from attnrate.large.loop import NEWS

FOLDER = Path("live")  # git ignores it, DVC does not: `dvc plots show` finds what is in it
FEWEST = 200  # steps; a shorter training is no news


PACKAGES = {"dvclive": ("dvclive",), "tensorboard": ("tensorboard", "tensorboardX"), "wandb": ("wandb",)}


def require(name: str) -> None:
    """Refuse a tracker whose package is not there; accelerate would name another one."""
    if name != "none" and not any(map(importlib.util.find_spec, PACKAGES[name])):
        raise UserError(f"live: {name} is not installed; `pip install {name}`, or `-S live=none`")


def options(name: str, run: Path, resume: bool) -> dict:
    """What each tracker wants to be told of a run; DVCLive adds to the curves of the last one, or begins anew."""
    if name == "dvclive":
        quiet = {"save_dvc_exp": False, "dvcyaml": None, "monitor_system": False, "report": None}
        return {"dir": str(run), "resume": resume, **quiet}
    if name == "tensorboard":
        return {"logging_dir": run.parent}
    return {"name": str(run.relative_to(FOLDER)), "dir": str(FOLDER)}  # by itself wandb makes a folder that git sees


def begin(name: str, run: Path, resume: bool) -> GeneralTracker:
    require(name)
    FOLDER.mkdir(exist_ok=True)
    project = run.name if name == "tensorboard" else "attnrate"
    tracker = LOGGER_TYPE_TO_CLASS[name](project, **options(name, run, resume))
    tracker.start()
    return tracker


class Follower:
    """The trackers of a stage, one for each of its runs."""

    def __init__(self, stage: str):
        self.name, self.folder = read("params.yaml").get("live", "none"), FOLDER / re.sub(r"[^\w.-]+", "_", stage)
        self.label, self.tracker = None, None

    def follow(self, label: str, step: int, steps: int, news: dict) -> None:
        if self.name == "none" or steps < FEWEST:
            return
        if label != self.label:
            self.end()
            run = self.folder / re.sub(r"[^\w.-]+", "_", label)
            self.label, self.tracker = (
                label,
                begin(self.name, run, resume=step > NEWS),
            )  # its first news, or a later one
        self.tracker.log(news, step)

    def end(self) -> None:
        if self.tracker is not None:
            self.tracker.finish()
