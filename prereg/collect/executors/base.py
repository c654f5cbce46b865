"""What the runner asks of a place where jobs run: workers on this machine now, a cluster later."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from typing import Protocol as Interface

from prereg.codec.convert import to_json
from prereg.collect.quarters import Quarters
from prereg.model.attempts import Cause
from prereg.model.plan import Shard
from prereg.model.study import Assistant, Configuration, ExactPlan, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What a worker opens before it can draw: one configuration in one build's environment."""

    build: str
    configuration: Mapping[str, Any]
    model: Mapping[str, Any] | None
    prompt: Sequence[int] | None

    @property
    def name(self) -> str:
        """The configuration's id."""
        return str(self.configuration["id"])

    def fields(self) -> dict[str, Any]:
        """What an `open` request says of it."""
        return {"configuration": self.configuration, "model": self.model, "prompt": self.prompt}


def opening_of(protocol: Protocol, configuration: Configuration) -> Opening:
    """The sealed JSON of a configuration, of its model and of its prompt.

    A drafter's model is an id in the protocol; the worker, which has no protocol, gets the model itself.
    """
    value: dict[str, Any] = to_json(configuration)
    drafter = configuration.drafter
    if isinstance(drafter, Assistant):
        value["drafter"]["model"] = to_json(protocol.models[drafter.model])
    return Opening(
        build=configuration.build,
        configuration=value,
        model=None if configuration.model is None else to_json(protocol.models[configuration.model]),
        prompt=None if configuration.prompt is None else list(protocol.prompts[configuration.prompt]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One shard to be drawn."""

    shard: Shard
    opening: Opening
    arm: Mapping[str, Any]
    """`id`, `role`, `speculation`."""
    walk: Mapping[str, Any] | None = None
    """How far a tree is walked: what a `choices` request says beside its arm and seeds. None for draws."""
    attempt: int = 1
    """Of its unit, the present one."""
    again: int = 0
    """Results of this very shard and attempt that are there already, to be compared with what comes of it:
    nothing that was kept of them may enter it."""


def walk_of(plan: ExactPlan) -> dict[str, Any]:
    """What a protocol's plan of its walks says to a worker."""
    return {
        "mode": "full" if plan.full else "best-first",
        "budget": {"runs": plan.runs, "seconds": None, "mass": plan.mass},
        "close_last": plan.close_last,
        "close_floor": plan.close_floor,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A shard's raw replies, one a request or one a leaf, in order and not yet trusted."""

    job: Job
    replies: list[Any]
    tree: Any = None
    """The raw end of a walk: runs, unexplored mass, admission. None for draws."""
    started: str
    ended: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A shard that cannot be had: its worker was lost, refused, or ran out of time."""

    job: Job
    reason: str
    cause: Cause = "engine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site(Quarters):
    """What every worker of a run is started from."""

    fingerprints: Mapping[str, str]
    """Of the environment of each build, as taken for this run."""
    workers: int
    request_seconds: float
    journals: Path
    """Where finished parts of trees are kept over a kill; its name tells the seal."""
    now: Callable[[], datetime]
    """The run's clock. Safe from any thread."""


class Limits(Interface):
    """The ceilings of time. Safe from any thread."""

    def start(self, job: Job) -> None:
        """A worker begins on the job; several may be on one."""
        ...

    def stop(self, job: Job) -> None:
        """A worker is done with the job."""
        ...

    def left(self, job: Job) -> float:
        """Seconds that the job may go on; 0 or less when a ceiling is reached."""
        ...

    def reached(self, job: Job) -> Cause:
        """Which ceiling it is, for a job of which nothing is left."""
        ...


class Executor(Interface):
    """Runs jobs on workers."""

    def run(
        self,
        jobs: Sequence[Job],
        *,
        limits: Limits,
        wanted: Callable[[Job], bool],
        begin: Callable[[Job], bool] | None,
        advance: Callable[[Job, int], None],
    ) -> Generator[Finished | Failed, None, None]:
        """Run the jobs, in order as far as there are free workers, and yield each result as it comes.

        A job that is not `wanted` when its turn comes is left out. So is one to which `begin` says False: it
        gets the job before a worker does, in the thread that asks for the results, so that what it enters is
        durable before anything is drawn. `advance` gets the job and 1 for each finished request or leaf (all
        of them, negative, for a failed job or a tree that is walked anew), from any thread. Ends early after
        `stop`.
        No worker is left when the generator is closed.
        """
        ...

    def stop(self) -> None:
        """Abandon everything in flight. Safe in a signal handler and from any thread."""
        ...
