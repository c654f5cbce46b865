"""The container engine of this machine: which it is, asking it, and clearing away what a killed run left."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prereg.collect.container import LABEL, EngineName
from prereg.errors import EngineFailed, UsageError

CHOICE = "PREREG_CONTAINER_ENGINE"
INSTALL = "apt-get install -y --no-install-recommends podman runc debootstrap"
_SECONDS = 120.0
_DOCKER_LIMITS = {"memory": "MemoryLimit", "swap": "SwapLimit", "pids": "PidsLimit"}
_SYSTEM = ("/usr/local/sbin", "/usr/sbin", "/sbin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A container engine that answers."""

    name: EngineName
    program: str
    version: str
    runc: bool
    """Whether podman is told to use runc."""


def engine_choice() -> EngineName:
    """Podman, or what PREREG_CONTAINER_ENGINE names. Raises UsageError unless the ledger knows it."""
    name = os.environ.get(CHOICE) or "podman"
    if name not in ("podman", "docker"):
        raise UsageError(
            f"{name!r} cannot be collected with: a ledger has room for podman and docker",
            where=CHOICE,
            next_step=f"{CHOICE}=podman, or {CHOICE}=docker",
        )
    return "podman" if name == "podman" else "docker"


def find_engine() -> Engine:
    """The engine that was chosen, if it answers and can hold a container to its limits.

    Raises EngineFailed that says what to install, what the engine said instead of its version, or which
    limits this machine does not give it.
    """
    chosen = engine_choice()
    program = shutil.which(chosen)
    if program is None:
        remedy = INSTALL if chosen == "podman" else f"install docker, or unset {CHOICE}"
        if chosen == "podman" and shutil.which("docker"):
            remedy += f"; or {CHOICE}=docker"
        raise EngineFailed(f"{chosen} is not installed", next_step=remedy)
    runc = find_tool("runc") is not None
    asking = Engine(name=chosen, program=program, version="", runc=runc)
    form = "{{.Client.Version}}" if chosen == "podman" else "{{.Server.Version}}"
    version = ask(asking, ["version", "--format", form]).strip()
    refuse_without_limits(chosen, ask(asking, ["info", "--format", "{{json .}}"]))
    return Engine(name=chosen, program=program, version=version, runc=runc)


def refuse_without_limits(engine: EngineName, info: str) -> None:
    """Raise EngineFailed where an engine says (`info`, as JSON) that it cannot limit memory and processes.

    Rootless podman on control groups of version 1 starts containers without them, with a warning alone; what
    was sealed as a limit would then hold for nobody.
    """
    try:
        told = json.loads(info)
        if engine == "podman":
            host = told["host"]
            rootless, version = bool(host["security"]["rootless"]), str(host["cgroupVersion"])
            missing = sorted({"memory", "pids"} - set(host["cgroupControllers"] or []))
        else:
            rootless, version = "name=rootless" in (told["SecurityOptions"] or []), str(told["CgroupVersion"])
            missing = [name for name, member in _DOCKER_LIMITS.items() if told[member] is not True]
    except (ValueError, KeyError, TypeError) as error:
        raise EngineFailed(
            f"{engine} info does not say which limits it can set: {error!r}", next_step=f"{engine} info"
        ) from None
    if not missing:
        return
    version = version.removeprefix("v")
    if not rootless:
        remedy = "boot with these controllers"
    elif version == "1":
        remedy = "run prereg as root"
    else:
        remedy = f"have the system's manager delegate {' '.join(missing)} to this user (systemd: Delegate=)"
    raise EngineFailed(
        f"{engine} cannot limit {' and '.join(missing)} here (control groups of version {version}"
        f"{', without root' if rootless else ''}): a worker would run without the limits that it must have",
        where=f"{engine} info",
        next_step=f"{remedy}, or use the runtime venv",
    )


def find_tool(name: str) -> str | None:
    """The path of a system program, also where the caller's PATH leaves out the folders for root."""
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *_SYSTEM]))


def ask(engine: Engine, words: Sequence[str], *, seconds: float = _SECONDS) -> str:
    """Run an engine's command and return what it prints. Raises EngineFailed with what it says."""
    try:
        done = subprocess.run(
            [engine.program, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineFailed(f"{engine.name} {words[0]} failed: {error}") from None
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()[-3:]
        raise EngineFailed(
            f"{engine.name} {words[0]} failed: {' / '.join(said) or f'status {done.returncode}'}",
            next_step=f"{engine.name} info",
        )
    return done.stdout.decode("utf-8", "replace")


def inspect(engine: Engine, kind: str, name: str) -> dict[str, Any]:
    """What the engine says of an `image` or a `container`. Raises EngineFailed if there is none."""
    value = json.loads(ask(engine, [kind, "inspect", name]))
    if not isinstance(value, list) or len(value) != 1 or not isinstance(value[0], dict):
        raise EngineFailed(f"{engine.name} describes {len(value)} {kind}s by the name {name}")
    return value[0]


def remove(engine: Engine, container: str) -> None:
    """Kill a container, if there is one of that name, and remove it."""
    words = ["rm", "--force", "--time", "0", "--ignore"] if engine.name == "podman" else ["rm", "--force"]
    # What could not be removed now is swept away at the next start.
    with contextlib.suppress(EngineFailed):
        ask(engine, [*words, container])


def new_name() -> str:
    """A name for a container of this process; it tells whose the container is."""
    pid = os.getpid()
    return f"prereg-{pid}-{_started(pid)}-{secrets.token_hex(6)}"


def sweep(engine: Engine) -> list[str]:
    """Remove the containers of processes of prereg that are no more; returns their names."""
    words = ["ps", "--all", "--filter", f"label={LABEL}", "--format", "{{.Names}}"]
    found = ask(engine, words).split()
    left = [name for name in found if name.startswith("prereg-") and not _owned(name)]
    for name in left:
        remove(engine, name)
    return left


def _owned(name: str) -> bool:
    _, pid, started, _ = [*name.split("-", 3), "", "", ""][:4]
    return pid.isdigit() and started.isdigit() and _started(int(pid)) == int(started)


def _started(pid: int) -> int:
    """When a process began, in the kernel's ticks since the boot; -1 if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
        return int(text.rpartition(")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return -1
