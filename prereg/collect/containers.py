"""Workers in containers: started from an image by its id, admitted before the first request, watched."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prereg.collect.container import ENVIRONMENT, PYTHON, SCRATCH, STUDY, Sandbox, run_command
from prereg.collect.container_check import LOOK, inside_faults, outside_faults
from prereg.collect.container_engine import Engine, ask, inspect, new_name, remove
from prereg.collect.worker import (
    Command,
    Worker,
    WorkerLost,
    WorkerRefused,
    environment,
    leash,
    python_command,
)
from prereg.errors import EngineFailed, UsageError, WrongState
from prereg.model.image import Image

MEMORY = "PREREG_CONTAINER_MEMORY"
_MEMORY_BYTES = 4 << 30
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
CONTROL_GROUPS = Path("/sys/fs/cgroup")


def memory_limit() -> int:
    """Bytes that a worker's container may take: PREREG_CONTAINER_MEMORY (such as `2g`), else 4 GiB."""
    text = os.environ.get(MEMORY, "")
    if not text:
        return _MEMORY_BYTES
    found = re.fullmatch(r"([1-9][0-9]{0,11})([kmg]?)", text.lower())
    if found is None:
        raise UsageError(f"{text!r} is no amount of memory, such as 2g", where=MEMORY)
    return int(found[1]) * _UNITS[found[2]]


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
    memory: int
    """Bytes."""
    seconds: int

    def as_json(self) -> dict[str, Any]:
        """As the ledger has them."""
        return {
            "engine": self.engine.name,
            "version": self.engine.version,
            "images": {name: image.id for name, image in self.images.items()},
        }

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
            raise EngineFailed(
                f"no worker of {launch.build} starts in its container: {error}",
                next_step=f"prereg build {launch.build} --container",
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
        return _memory_counter(int(told["State"]["Pid"]))

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
        if re.search(r"^oom_kill [1-9]", text, re.MULTILINE):
            self._lose(
                f"reached its container's limit of memory, {self._sandbox.memory} bytes, during {op!r}"
            )


def _memory_counter(pid: int) -> Path:
    """The file that counts what the kernel killed in the control group of a process, for want of memory."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text("ascii", "replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        tried = {
            "memory": CONTROL_GROUPS / "memory" / path.lstrip("/") / "memory.oom_control",
            "": CONTROL_GROUPS / path.lstrip("/") / "memory.events",
        }.get(controllers)
        if tried is not None and tried.is_file():
            return tried
    raise EngineFailed(
        "the memory of containers cannot be watched: their control groups are not found on this machine",
        where=str(CONTROL_GROUPS),
        next_step="a container engine that runs on this machine, or the runtime venv",
    )
