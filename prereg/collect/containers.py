"""Workers in containers: started from an image by its id, admitted before the first request, watched."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prereg.collect.container import ENVIRONMENT, EXHAUSTED, PYTHON, SCRATCH, STUDY, Sandbox, run_command
from prereg.collect.container_check import LOOK, inside_faults, outside_faults
from prereg.collect.container_engine import Engine, ask, inspect, new_name, remove
from prereg.collect.start_line import leash, python_command
from prereg.collect.worker import (
    Command,
    Worker,
    WorkerLost,
    WorkerRefused,
    environment,
)
from prereg.errors import EngineFailed, UsageError, WrongState
from prereg.model.image import Image

MEMORY = "PREREG_CONTAINER_MEMORY"
MIB = 1 << 20
_MORE = f"ceilings/memory_mib in protocol.json before the seal; where it is not there, {MEMORY}=8g"
_MEMORY_BYTES = 4 << 30
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
CONTROL_GROUPS = Path("/sys/fs/cgroup")


def memory_limit(sealed: int | None = None) -> int:
    """Bytes that a worker's container may take: the protocol's `memory_mib`, if it has one; it decides alone.

    Else PREREG_CONTAINER_MEMORY (such as `2g`), else 4 GiB. Raises UsageError for what is no amount.
    """
    if sealed is not None:
        return sealed * MIB
    text = os.environ.get(MEMORY, "")
    if not text:
        return _MEMORY_BYTES
    found = re.fullmatch(r"([1-9][0-9]{0,11})([kmg]?)", text.lower())
    if found is None:
        raise UsageError(f"{text!r} is no amount of memory, such as 2g", where=MEMORY)
    return int(found[1]) * _UNITS[found[2]]


def limit_without_effect(sealed: int | None) -> str | None:
    """What to tell a collector whose own limit of memory gives way to the protocol's, if it does."""
    if sealed is None or not os.environ.get(MEMORY):
        return None
    return f"{MEMORY} does not apply: the protocol limits each container to {sealed} MiB of memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerLaunch:
    """A worker in a container; see `prereg.collect.worker.Start`."""

    engine: Engine
    build: str
    sandbox: Sandbox

    @property
    def grace(self) -> float:
        """The engine clears the container away before its own process ends."""
        return 3.0

    def command(self) -> Command:
        """The engine's command line; the environment is the engine's, the worker's is among the words."""
        variables = environment(SCRATCH, f"{ENVIRONMENT}/bin")
        worker = python_command(PYTHON, f"{STUDY}/code")
        run = run_command(
            self.engine.name, self.engine.program, self.sandbox, variables, worker, runc=self.engine.runc
        )
        return Command(argv=[*leash(), *run], cwd=Path("/"), variables=dict(os.environ))

    def stop(self) -> None:
        """Kill the container: it is not in the group of the process that asked for it."""
        remove(self.engine, self.sandbox.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Containers:
    """What every container of a run is started from."""

    engine: Engine
    images: Mapping[str, Image]
    """Of each build."""
    study: Path
    """The staged study, with the harness under `code/`."""
    seconds: int
    memory_mib: int | None = None
    """The limit of memory that the protocol has (formats section 20); None: the collector's own."""

    @property
    def memory(self) -> int:
        """The limit of memory of each container, in bytes; see `memory_limit`."""
        return memory_limit(self.memory_mib)

    def as_json(self) -> dict[str, Any]:
        """As the ledger has them: with the limit of memory exactly if it is the protocol's."""
        told: dict[str, Any] = {
            "engine": self.engine.name,
            "version": self.engine.version,
            "images": {name: image.id for name, image in self.images.items()},
        }
        return told if self.memory_mib is None else {**told, "memory_mib": self.memory_mib}

    def launch(self, build: str) -> ContainerLaunch:
        """How a worker of that build is started, under a name of its own."""
        sandbox = Sandbox(
            name=new_name(),
            image=self.images[build].id,
            study=self.study,
            memory=self.memory,
            seconds=self.seconds,
        )
        return ContainerLaunch(engine=self.engine, build=build, sandbox=sandbox)


class ContainedWorker(Worker):
    """A worker in a container, which is looked at, from outside and from inside, before anything is asked.

    The first call raises EngineFailed if no worker starts in it, WrongState if it is not the sandbox that was
    ordered.
    """

    def __init__(self, launch: ContainerLaunch) -> None:
        super().__init__(launch)
        self._ordered = launch
        self._sandbox = launch.sandbox
        self._counter: Path | None = None

    def _admit(self) -> Path:
        """Refuse anything but the sandbox; returns the kernel's record of its lack of memory."""
        launch = self._ordered
        try:
            super().call("hello")
        except (WorkerLost, WorkerRefused) as error:
            command = f"prereg build {launch.build} --container"
            raise EngineFailed(
                f"no worker of {launch.build} starts in its container: {error}",
                next_step=_MORE if EXHAUSTED in str(error) else command,
            ) from None
        told = inspect(launch.engine, "container", self._sandbox.name)
        words = ["exec", self._sandbox.name, PYTHON, "-I", "-c", LOOK]
        faults = [
            *outside_faults(launch.engine.name, told, self._sandbox),
            *inside_faults(json.loads(ask(launch.engine, words))),
        ]
        if faults:
            raise WrongState(
                f"the container of {launch.build} is not closed: {'; '.join(faults)}",
                where=self._sandbox.name,
                next_step=f"{launch.engine.name} container inspect, and see what changes its command line",
            )
        return memory_counter(_groups(int(told["State"]["Pid"])))

    def call(self, op: str, **fields: Any) -> Any:
        """See `Worker.call`. What was told by a container that ran out of memory is lost with it.

        The kernel may have killed the command of a study, which looks like a crash of its own.
        """
        if self._counter is None:
            self._counter = self._admit()
        try:
            value = super().call(op, **fields)
        except WorkerRefused:
            self._refuse_exhausted(op)
            raise
        self._refuse_exhausted(op)
        return value

    def _refuse_exhausted(self, op: str) -> None:
        assert self._counter is not None
        try:
            text = self._counter.read_text("ascii", "replace")
        except OSError:
            self._lose(f"and its container ended during {op!r}")
        if exhausted(text):
            self._lose(
                f"reached its container's limit of memory, {self._sandbox.memory} bytes, during {op!r}"
            )


def memory_counter(groups: str, root: Path = CONTROL_GROUPS) -> Path:
    """The file that counts what the kernel killed in a control group for want of memory.

    `groups` is a process's `/proc/<pid>/cgroup`; the two versions of control groups, which may both be there,
    have files of different names. Raises EngineFailed if there is none below `root`.
    """
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            tried = root / "memory" / path.lstrip("/") / "memory.oom_control"
        elif not controllers:
            tried = root / path.lstrip("/") / "memory.events"
        else:
            continue
        if tried.is_file():
            return tried
    raise EngineFailed(
        "the memory of containers cannot be watched: their control groups are not found on this machine",
        where=str(root),
        next_step="a container engine that runs on this machine, or the runtime venv",
    )


def exhausted(counter: str) -> bool:
    """Whether a file that `memory_counter` found says that anything was killed."""
    return re.search(r"^oom_kill [1-9]", counter, re.MULTILINE) is not None


def _groups(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cgroup").read_text("ascii", "replace")
    except OSError:
        return ""
