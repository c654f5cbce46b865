"""Podman without root: where it can set no limits, as on control groups of version 1, it is refused."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from prereg.collect.container_engine import find_tool
from prereg.store.layout import distribution_root

pytestmark = pytest.mark.containers

USER = "prereg-rootless"
# With the system's Python: this user may not be able to read the one that the tests run with.
ASK = """
import sys
sys.path.insert(0, sys.argv[1])
from prereg.collect.container_engine import find_engine
from prereg.errors import PreregError
try:
    print("found", find_engine().name)
except PreregError as error:
    print("refused", error.what, "/", error.next_step)
"""


@pytest.fixture(scope="module")
def as_user() -> Iterator[Callable[..., str]]:
    """Runs a command as a user of these tests' own, who has nothing but a range of subordinate ids."""
    for name in ("useradd", "userdel", "setpriv", "newuidmap", "podman"):
        if find_tool(name) is None:
            pytest.skip(f"no rootless podman here: {name} is missing (Debian: uidmap, passwd, podman)")
    if os.geteuid() != 0 or shutil.which("python3", path="/usr/bin") is None:
        pytest.skip(
            "no rootless podman here: only root can make a user for it, who needs the system's Python"
        )
    place = Path(tempfile.mkdtemp(prefix="prereg-rootless-"))
    place.chmod(0o755)
    shutil.copytree(distribution_root() / "prereg", place / "prereg")
    home = place / "home"
    subprocess.run([str(find_tool("useradd")), "--create-home", "--home-dir", str(home), USER], check=True)
    (home / "run").mkdir(mode=0o700)
    shutil.chown(home / "run", USER, USER)
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(home / "run"),
        "XDG_CONFIG_HOME": str(home / "config"),
    }
    setpriv = [str(find_tool("setpriv")), "--reuid", USER, "--regid", USER, "--init-groups", "--"]

    def run(*words: str) -> str:
        done = subprocess.run(
            [*setpriv, *words], capture_output=True, text=True, env=variables, cwd=home, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    try:
        yield lambda *words: run(*(str(place) if word == "PLACE" else word for word in words))
    finally:
        for file in home.glob("run/**/pause.pid"):
            # The process that keeps the user's namespace; with it the user cannot be removed.
            pid = int(file.read_text())
            os.kill(pid, signal.SIGKILL)
            while Path(f"/proc/{pid}").exists():
                time.sleep(0.05)
        subprocess.run([str(find_tool("userdel")), USER], check=True, capture_output=True)
        shutil.rmtree(place)


def test_rootless_podman_is_taken_only_with_its_limits(as_user: Callable[..., str]) -> None:
    form = "{{.Host.Security.Rootless}} {{.Host.CgroupsVersion}} {{.Host.CgroupControllers}}"
    rootless, version, controllers = as_user("podman", "info", "--format", form).strip().split(" ", 2)
    assert rootless == "true"
    told = as_user("/usr/bin/python3", "-I", "-c", ASK, "PLACE").strip()
    if {"memory", "pids"} <= set(controllers.strip("[]").split()):
        assert told == "found podman"
        return
    assert told.startswith("refused podman cannot limit memory")
    assert f"control groups of version {version.removeprefix('v')}, without root" in told
    assert ("run prereg as root" if version == "v1" else "delegate") in told
