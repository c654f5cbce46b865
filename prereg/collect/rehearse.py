"""One request or a few paths an arm before the seal, on a seed that nobody reserves: does the study run?

The outcomes are looked at only for crashes and then forgotten; they are no data, and no value is shown.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prereg.codec.overlap import Span, folded
from prereg.collect.executors.base import opening_of, walk_of
from prereg.collect.observers import REQUESTS, compare_observed
from prereg.collect.quarters import Quarters, quarters_of, staged_draft
from prereg.collect.worker import Worker, WorkerLost, WorkerRefused
from prereg.errors import EngineFailed
from prereg.model.study import Arm, Channel, Configuration, Study
from prereg.store.layout import StudyPaths
from prereg.store.seeds import repository_spans

RUNS = 4
"""Runs of a walk that is only tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """How one request of one arm went, or the first runs of its walk."""

    configuration: str
    channel: Channel
    arm: str
    role: str
    rows: int
    """Draws of the request, or leaves of the walk."""
    crashed: int
    crash: str | None
    """Name of the first crash."""
    said: str
    """The end of what the engine or command wrote to its standard error, if anything crashed."""
    seconds: float

    @property
    def fatal(self) -> bool:
        """A reference arm that only crashes leaves nothing to compare with."""
        return self.role == "reference" and self.crashed == self.rows


def rehearse(paths: StudyPaths, study: Study) -> list[Rehearsal]:
    """Make one request, or begin one walk, for every configuration and arm, from the files as they lie there.

    A few requests of each speculating arm are made with the counting observers and without. Raises WrongState
    if a build is not made, and EngineFailed if a worker is lost or refuses, or if the observers change
    anything.
    """
    builds = sorted({c.build for c in study.protocol.configurations})
    seeds = free_seeds(repository_spans(paths.studies), REQUESTS)
    found: list[Rehearsal] = []
    with staged_draft(paths, builds) as stage:
        quarters = quarters_of(study.protocol, builds, stage)
        for build in builds:
            found += _on_build(study, build, quarters, seeds)
    order = {c.id: i for i, c in enumerate(study.protocol.configurations)}
    return sorted(found, key=lambda r: (order[r.configuration], r.channel))


def free_seeds(spans: list[Span], count: int) -> list[int]:
    """The least seeds whose low 32 bits no study reserves or has used."""
    found: list[int] = []
    seed = 0
    taken = sorted(piece for span in spans for piece in folded(span.first, span.end))
    for first, end in [*taken, (2**32, 2**32)]:
        found += range(seed, min(first, seed + count - len(found)))
        seed = max(seed, end)
    return found


def _on_build(study: Study, build: str, quarters: Quarters, seeds: list[int]) -> list[Rehearsal]:
    protocol = study.protocol
    ceiling = float(protocol.ceilings.request_seconds)
    found = []
    current = build
    try:
        with quarters.worker(build, build) as worker:
            for configuration in protocol.configurations:
                if configuration.build != build:
                    continue
                current = configuration.id
                worker.call("open", **opening_of(protocol, configuration).fields(), cwd=quarters.folder)
                for arm in protocol.arms:
                    if configuration in protocol.drawn():
                        found.append(_request(worker, study, configuration, arm, seeds[0], ceiling))
                    if configuration in protocol.walked():
                        found.append(_walk(worker, study, configuration, arm, seeds[0], ceiling))
                    if configuration.adapter != "command" and arm.speculation and configuration.drafter:
                        compare_observed(worker, current, _arm(arm), seeds, ceiling)
    except (WorkerLost, WorkerRefused, OSError) as error:
        raise EngineFailed(
            f"{current} cannot be run: {error}",
            where=f"protocol.json#/configurations ({current})",
            next_step="mend the configuration or its command, then prereg check",
        ) from None
    return found


def _request(
    worker: Worker, study: Study, configuration: Configuration, arm: Arm, seed: int, ceiling: float
) -> Rehearsal:
    rows = study.protocol.sampling[arm.id].of_build(configuration.build).rows
    replies: list[Mapping[str, object]] = []
    begun = time.monotonic()
    worker.call(
        "draws",
        silence=ceiling,
        streams={"request": replies.append},
        arm=_arm(arm),
        seeds=[str(seed)],
        rows=rows,
    )
    seconds = time.monotonic() - begun
    draws = replies[0]["draws"] if replies else []
    assert isinstance(draws, list)
    return _rehearsed(worker, configuration, "draws", arm, [d["outcome"] for d in draws], seconds)


def _walk(
    worker: Worker, study: Study, configuration: Configuration, arm: Arm, seed: int, ceiling: float
) -> Rehearsal:
    plan = study.protocol.exact
    assert plan is not None
    leaves: list[Mapping[str, Any]] = []
    begun = time.monotonic()
    worker.call(
        "choices",
        silence=RUNS * ceiling,
        streams={"leaf": leaves.append, "restart": lambda _: leaves.clear()},
        arm=_arm(arm),
        seeds=[str(seed)],
        sample=RUNS,
        **{**walk_of(plan), "mode": "best-first", "budget": {"runs": RUNS, "seconds": None, "mass": None}},
    )
    seconds = time.monotonic() - begun
    return _rehearsed(worker, configuration, "exact", arm, [leaf["outcome"] for leaf in leaves], seconds)


def _arm(arm: Arm) -> dict[str, Any]:
    return {"id": arm.id, "role": arm.role, "speculation": arm.speculation}


def _rehearsed(
    worker: Worker,
    configuration: Configuration,
    channel: Channel,
    arm: Arm,
    outcomes: Sequence[Mapping[str, Any]],
    seconds: float,
) -> Rehearsal:
    crashes = [str(outcome["crash"]) for outcome in outcomes if "crash" in outcome]
    return Rehearsal(
        configuration=configuration.id,
        channel=channel,
        arm=arm.id,
        role=arm.role,
        rows=len(outcomes),
        crashed=len(crashes),
        crash=crashes[0] if crashes else None,
        said=worker.said() if crashes else "",
        seconds=seconds,
    )
