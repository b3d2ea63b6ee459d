"""A DVC remote, in a folder and behind SSH: push here, pull in a clone, and there is nothing left to run."""

import getpass
import hashlib
import importlib.util
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests import pipeline
from tests.conftest import Workspace
from tests.robustness.undisturbed import smoke

pytestmark = pytest.mark.slow

TARGET = "translation_tokens"
BRANCH = ("translation_corpus", TARGET)  # folders in the cache, counts in git
SSHD = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Workspace:
    """A repository in which a branch of the pipeline has run at the smoke profile, and the result is committed."""
    space = smoke(tmp_path_factory.mktemp("source"), {})
    assert TARGET in space.ok("dvc", "repro", TARGET)
    space.ok("git", "add", "--all")
    space.ok("git", "commit", "--quiet", "--message", "Results of the branch")
    return space


def outs(space: Workspace) -> dict[str, str]:
    """sha256 of every file of the branch's cached outs."""
    stages = [s for s in pipeline.stages(space.path) if s.name in BRANCH]
    cached = [space.path / out for s in stages for out, options in s.outs.items() if options.get("cache", True)]
    found = [f for out in cached for f in ([out] if out.is_file() else sorted(out.rglob("*")))]
    return {f.relative_to(space.path).as_posix(): hashlib.sha256(f.read_bytes()).hexdigest() for f in found}


def carried_over(
    source: Workspace, folder: Path, address: str, *settings: tuple[str, str], env: dict[str, str]
) -> None:
    """Push to the address, clone, pull, repro: the same bytes, and no stage runs."""
    here = Workspace(source.path, source.env | env)
    there = Workspace(folder / "clone", here.env)
    here.ok("dvc", "remote", "add", "--force", "--default", "--quiet", "store", address)
    for key, value in settings:
        here.ok("dvc", "remote", "modify", "--quiet", "store", key, value)
    assert "pushed" in here.ok("dvc", "push", *BRANCH)
    here.ok("git", "commit", "--quiet", "--all", "--message", f"A remote: {address}")
    here.ok("git", "clone", "--quiet", str(here.path), str(there.path))
    assert outs(there) == {}, "what is in the cache is not in git"
    there.ok("dvc", "pull", *BRANCH)
    assert outs(there) == outs(here)
    assert {path.split("/")[1] for path in outs(here)} == set(BRANCH)
    output = there.ok("dvc", "repro", TARGET)
    assert "Running stage" not in output and "up to date" in output
    assert there.changes() == "", "dvc.lock is as committed"


def test_a_folder_is_a_remote(source, tmp_path):
    carried_over(source, tmp_path, str(tmp_path / "store"), env={})


@pytest.fixture
def server(tmp_path):
    """sshd for the user who runs the tests, with keys of its own; gives its port and the path of the user's key."""
    if SSHD is None or importlib.util.find_spec("dvc_ssh") is None:
        pytest.skip("no sshd on this machine" if SSHD is None else "the package dvc-ssh is not installed")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # sshd asks for it when root starts it
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (tmp_path / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {tmp_path}/host\nAuthorizedKeysFile {tmp_path}/user.pub\n"
        f"PidFile {tmp_path}/pid\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nSubsystem sftp internal-sftp\n"
    )
    with (tmp_path / "sshd.log").open("w") as log:
        process = subprocess.Popen([SSHD, "-D", "-e", "-f", tmp_path / "sshd_config"], stderr=log)
    try:
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, (tmp_path / "sshd.log").read_text()
            time.sleep(0.1)
        yield port, tmp_path / "user"
    finally:
        process.terminate()
        process.wait()


def test_a_host_behind_ssh_is_a_remote(source, tmp_path, server):
    port, key = server
    address = f"ssh://{getpass.getuser()}@127.0.0.1:{port}{tmp_path}/store"
    carried_over(source, tmp_path, address, ("keyfile", str(key)), env={"HOME": str(tmp_path)})
    assert [p for p in (tmp_path / "store").rglob("*") if p.is_file()], "it went over the wire into this folder"
