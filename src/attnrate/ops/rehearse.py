"""`make rehearse`: every stage of the paper profile for two steps, at true model and input sizes, on this machine.

In a temporary copy and without network: profiles/rehearse.yaml on profiles/paper.yaml on params.yaml. Two stages at a
time, of one thread each. Sentences come from archives as WMT14's, through preflight's downloads, off hosts of this
machine that hang up, are too slow or have another file.
"""

import contextlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import yaml

from attnrate.core import params
from attnrate.core.errors import UserError
from attnrate.ops import hosts
from attnrate.ops.profile import overlay
from attnrate.schemas.all import Params
from attnrate.schemas.check import check
from attnrate.sources import corpora, fetch, wmt14


def rehearsal(root: Path) -> dict:
    content = params.read(root / "params.yaml")
    for name in ("paper", "rehearse"):
        path = root / "profiles" / f"{name}.yaml"
        content = overlay(content, params.read(path), path)
    check(Params, content, "profiles/rehearse.yaml")
    return content


def copy(root: Path, to: Path) -> None:
    """What git tracks or could track; no environment, cache or scratch files. DVC links its 5 GB of outs."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=root, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        if (root / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, to / name)
    (to / ".dvc").mkdir(exist_ok=True)
    (to / ".dvc" / "config.local").write_text("[cache]\n    type = hardlink,copy\n")
    subprocess.run(["git", "init", "--quiet"], cwd=to, check=True)


def archives(folder: Path) -> list[wmt14.Archive]:
    """Archives like WMT14's with made-up sentences, where a host would have them."""
    corpus, made = corpora.toy(sizes={"train": 600, "dev": 10, "test": 4}), []
    for archive in wmt14.ARCHIVES:
        path = folder / archive.address
        path.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(path, "w:gz") as tar:
            for name, lines in zip(
                (archive.english, archive.german), zip(*corpus[archive.part], strict=True), strict=True
            ):
                form = "<seg>{}</seg>\n" if name.endswith(".sgm") else "{}\n"
                content = "".join(map(form.format, lines)).encode()
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        made.append(replace(archive, algorithm="sha256", digest=fetch.digest(path, "sha256")))
    return made


@contextlib.contextmanager
def mirrored(addresses: list[str]):
    """As a user does it: the environment names the mirrors. What would take minutes takes a moment."""
    before, limits = dict(os.environ), (fetch.WINDOW, fetch.PAUSE)
    os.environ |= {fetch.MIRRORS: " ".join(addresses), "no_proxy": "127.0.0.1"}
    fetch.WINDOW, fetch.PAUSE = 0.3, 0.01
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        fetch.WINDOW, fetch.PAUSE = limits


def sentences(to: Path) -> dict[str, str]:
    """preflight's downloads from every kind of bad host, and the files it makes of them: part → prefix."""
    from attnrate.ops import preflight  # which copies a tree as this does

    made = archives(to / "hosts")
    none = {"name": "toy", "start": "scratch"}  # but for the archives
    content = {"vit": {"data": none, "main": none, "sweep": none, "pretrained": none}}
    content |= {"translation": {"data": {"corpus": "wmt14", "folder": None}}}
    with contextlib.chdir(to), hosts.mirrors(to / "hosts") as (addresses, asked), mirrored(addresses):
        preflight.fetch(preflight.downloads(content, made))
        found = preflight.heads(to / "heads", archives=made)
    kinds = {line.partition(" ")[0] for line in asked}
    if kinds != {*hosts.KINDS} - {"gone"}:
        raise UserError(f"not every host was asked: {', '.join(sorted(kinds))}")
    print(f"{len(made)} archives came through hosts that were {', '.join(hosts.KINDS)}, in {len(asked)} requests")
    return found


def main() -> None:
    root, start = Path.cwd(), time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="rehearse-") as folder:
        to = Path(folder)
        try:
            content = rehearsal(root)
            content["translation"]["data"] |= {"corpus": "files"} | sentences(to)
        except UserError as e:
            sys.exit(str(e))
        copy(root, to)
        (to / "params.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
        env = os.environ | {
            "http_proxy": "http://127.0.0.1:9",
            "https_proxy": "http://127.0.0.1:9",
            "HF_HUB_OFFLINE": "1",
            "CUDA_VISIBLE_DEVICES": "",
        }
        code = subprocess.run(
            [sys.executable, "-m", "attnrate.ops.cluster", "--workers", "2"], cwd=to, env=env
        ).returncode
    if code:
        sys.exit(f"the rehearsal failed after {time.perf_counter() - start:.0f} s; the stage above says why")
    print(f"the paper profile rehearsed in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
