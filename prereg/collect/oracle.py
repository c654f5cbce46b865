"""What the engines' oracles say, through workers: what `prereg events` builds an event family from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prereg.codec.canonical import dumps
from prereg.codec.convert import from_json, outcome_from, to_json
from prereg.collect.executors.base import opening_of
from prereg.collect.progress import Progress
from prereg.collect.quarters import Quarters, quarters_of, staged_draft
from prereg.collect.worker import Worker, WorkerLost, WorkerRefused
from prereg.errors import EngineFailed
from prereg.model.hypotheses import Hypotheses
from prereg.model.law import Mass, MechanismLaw, ReferenceEntry
from prereg.model.study import Configuration, Protocol
from prereg.store.layout import StudyPaths

AGREEMENT = 1e-6
"""How far the two oracles may differ in any probability: the engine's rows are float32, and batching
alone moves them by some 1e-8."""

SWITCH = 1e-12
"""How far a mechanism's simulator may be from P once every read that speculation moves is logical
(`docs/formats.md`, section 15). Both then take the same rows, so that only sums differ."""

Law = tuple[Mass, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """What was enumerated, by configuration."""

    laws: dict[str, Law] = field(default_factory=dict)
    """P of every configuration that has an engine."""
    mechanisms: dict[str, MechanismLaw] = field(default_factory=dict)
    """The law mu_H of every registered one."""
    replays: dict[str, tuple[ReferenceEntry, ...]] = field(default_factory=dict)
    """The documented record after each prefix, where records have such a reference."""


def enumerate_references(
    protocol: Protocol,
    progress: Progress,
    *,
    hypotheses: Hypotheses | None = None,
    folder: Path | None = None,
    cross_check: bool = False,
) -> References:
    """Enumerate the laws of every configuration that has an engine, by this installation's harness.

    `hypotheses` registers mechanisms; `folder` is the study's, where its own classes lie; `cross_check`
    enumerates P again with the slow twin.
    Configurations that run a command have no oracle and are left out. Raises EngineFailed if an oracle fails,
    the two disagree or a mechanism's switch does not give P, and WrongState if a build is not built.
    """
    wanted = [c for c in protocol.configurations if c.adapter != "command"]
    builds = list(dict.fromkeys(c.build for c in wanted))
    registered = (
        {row.configuration: row.hypothesis for row in hypotheses.configurations} if hypotheses else {}
    )
    found = References()
    paths = None if folder is None else StudyPaths(root=folder.absolute())
    with staged_draft(paths, builds) as stage:
        quarters = quarters_of(protocol, builds, stage)
        for build in builds:
            _on_build(protocol, build, quarters, progress, cross_check, registered, found)
    return found


def _on_build(
    protocol: Protocol,
    build: str,
    quarters: Quarters,
    progress: Progress,
    cross_check: bool,
    registered: Mapping[str, str],
    found: References,
) -> None:
    """Add what the configurations of one build have to `found`."""
    current = ""
    try:
        with quarters.worker(build, build) as worker:
            for configuration in protocol.configurations:
                if configuration.build != build or configuration.adapter == "command":
                    continue
                current = configuration.id
                worker.call("open", **opening_of(protocol, configuration).fields(), cwd=quarters.folder)
                hypothesis = registered.get(current)
                law = found.laws[current] = _reference(worker, current, progress, cross_check, hypothesis)
                if hypothesis is not None:
                    progress.note(f"{current}: enumerating {hypothesis}, with its switch and without")
                    found.mechanisms[current] = _mechanism(worker, current, hypothesis, law)
                if _is_replayed(configuration):
                    progress.note(f"{current}: replaying its records")
                    found.replays[current] = _replay(worker, current)
    except (WorkerLost, WorkerRefused, OSError) as error:
        raise EngineFailed(
            f"the oracle failed on {current or 'start'}: {error}",
            where=f"protocol.json#/configurations ({current})" if current else build,
            next_step=f"prereg build {build}",
        ) from None


def _reference(
    worker: Worker, name: str, progress: Progress, cross_check: bool, hypothesis: str | None
) -> Law:
    """P of the open configuration. A mechanism takes row by row, as the slow twin does; so then does P."""
    progress.note(f"{name}: enumerating the reference law")
    law = _law(worker.call("law", naive=hypothesis is not None), name)
    if cross_check:
        progress.note(f"{name}: enumerating it again by the other oracle")
        _compare(law, _law(worker.call("law", naive=hypothesis is None), name), name)
    progress.note(f"{name}: {len(law):,} outcomes")
    return law


def _mechanism(worker: Worker, name: str, hypothesis: str, reference: Law) -> MechanismLaw:
    logical = _law(worker.call("mechanism", hypothesis=hypothesis, logical=True), name)
    switch, worst = _gap(reference, logical)
    if switch > SWITCH:
        raise EngineFailed(
            f"{hypothesis}, every read made logical, does not give the reference law of {name}: "
            f"it differs by {switch:.3g} on {worst}",
            where=f"hypotheses.json#/configurations ({name})",
            next_step="mend its simulator in harness/mechanisms, or register another hypothesis",
        )
    law = _law(worker.call("mechanism", hypothesis=hypothesis), name)
    return MechanismLaw(id=hypothesis, switch=switch, law=law)


def _is_replayed(configuration: Configuration) -> bool:
    return configuration.records is not None and configuration.records.reference == "replay"


def _replay(worker: Worker, name: str) -> tuple[ReferenceEntry, ...]:
    records: list[Any] = worker.call("replay")["records"]
    where = f"the replay of {name}"
    return tuple(from_json(each, ReferenceEntry, where=where) for each in records)


def _law(reply: Any, name: str) -> Law:
    try:
        law = tuple(Mass(outcome=outcome_from(m["outcome"]), p=float(m["p"])) for m in reply["law"])
    except (KeyError, TypeError, ValueError) as error:
        raise EngineFailed(f"the oracle of {name} sent no law: {error!r}") from None
    total = math.fsum(m.p for m in law)
    if not all(0 < m.p <= 1 for m in law) or abs(total - 1) > 1e-9:
        raise EngineFailed(f"the law of {name} is none: it sums to {total!r}")
    return law


def _compare(fast: Law, slow: Law, name: str) -> None:
    gap, worst = _gap(fast, slow)
    if gap > AGREEMENT:
        raise EngineFailed(f"the two oracles disagree on {name}: by {gap!r} on {worst}")


def _gap(one: Law, other: Law) -> tuple[float, str]:
    """The greatest difference of two laws in any probability, and the outcome that has it."""
    a, b = ({dumps(to_json(m.outcome)): m.p for m in law} for law in (one, other))
    worst = max(a.keys() | b.keys(), key=lambda key: abs(a.get(key, 0.0) - b.get(key, 0.0)))
    return abs(a.get(worst, 0.0) - b.get(worst, 0.0)), worst.decode()
