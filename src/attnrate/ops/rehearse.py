"""`make rehearse`: every stage of the paper profile for two steps, at true model and input sizes, on this machine.

In a temporary copy and without network: profiles/rehearse.yaml on profiles/paper.yaml on params.yaml. Two stages at a
time, of one thread each.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from attnrate.core import params
from attnrate.core.errors import UserError
from attnrate.ops.profile import overlay
from attnrate.schemas.all import Params
from attnrate.schemas.check import check


def rehearsal(root: Path) -> dict:
    content = params.read(root / "params.yaml")
    for name in ("paper", "rehearse"):
        path = root / "profiles" / f"{name}.yaml"
        content = overlay(content, params.read(path), path)
    check(Params, content, "profiles/rehearse.yaml")
    return content


def copy(root: Path, to: Path) -> None:
    """What git tracks or could track; no environment, cache or scratch files."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=root, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        if (root / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, to / name)
    subprocess.run(["git", "init", "--quiet"], cwd=to, check=True)


def main() -> None:
    root, start = Path.cwd(), time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="rehearse-") as folder:
        to = Path(folder)
        try:
            content = rehearsal(root)
        except UserError as e:
            sys.exit(str(e))
        copy(root, to)
        (to / "params.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
        env = os.environ | {
            "http_proxy": "http://127.0.0.1:9",
            "https_proxy": "http://127.0.0.1:9",
            "HF_HUB_OFFLINE": "1",
        }
        code = subprocess.run(
            [sys.executable, "-m", "attnrate.ops.cluster", "--workers", "2"], cwd=to, env=env
        ).returncode
    if code:
        sys.exit(f"the rehearsal failed after {time.perf_counter() - start:.0f} s; the stage above says why")
    print(f"the paper profile rehearsed in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
