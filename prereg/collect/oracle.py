"""Reference laws from the oracle, through workers: what `prereg events` builds an event family from."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prereg.codec.canonical import dumps
from prereg.codec.convert import outcome_from, to_json
from prereg.collect.executors.base import opening_of
from prereg.collect.network import isolation
from prereg.collect.progress import Progress
from prereg.collect.runtime import environment_of, interpreter, load_build
from prereg.collect.worker import Launch, Worker, WorkerLost, WorkerRefused
from prereg.errors import EngineFailed
from prereg.model.law import Mass
from prereg.model.study import Protocol
from prereg.store.layout import harness_root

AGREEMENT = 1e-6
"""How far the two oracles may differ in any probability: the engine's rows are float32, and batching
alone moves them by some 1e-8."""


def reference_laws(
    protocol: Protocol,
    progress: Progress,
    *,
    folder: Path | None = None,
    environments: Mapping[str, Path] | None = None,
    cross_check: bool = False,
) -> dict[str, tuple[Mass, ...]]:
    """The law P of every configuration that has an engine, by id, from this installation's harness.

    `folder` is the study's, where its own classes lie; `environments` gives each build's folder (default: the
    built one); `cross_check` enumerates again with the slow twin. Configurations that run a command have no
    oracle and are left out. Raises EngineFailed if an oracle fails or the two disagree, and WrongState if a
    build is not built.
    """
    wanted = [c for c in protocol.configurations if c.adapter != "command"]
    folders = dict(environments or {})
    for build in sorted({c.build for c in wanted} - set(folders)):
        folders[build] = environment_of(load_build(build))
    laws: dict[str, tuple[Mass, ...]] = {}
    for build in dict.fromkeys(c.build for c in wanted):
        with tempfile.TemporaryDirectory(prefix="prereg-oracle-") as scratch:
            launch = Launch(
                python=interpreter(folders[build]),
                code=harness_root().parent,
                scratch=Path(scratch),
                isolation=isolation(),
            )
            laws.update(_laws_of_build(protocol, build, launch, progress, cross_check, folder))
    return {c.id: laws[c.id] for c in wanted}


def _laws_of_build(
    protocol: Protocol,
    build: str,
    launch: Launch,
    progress: Progress,
    cross_check: bool,
    folder: Path | None,
) -> dict[str, tuple[Mass, ...]]:
    laws = {}
    current = ""
    try:
        with Worker(launch) as worker:
            for configuration in protocol.configurations:
                if configuration.build != build or configuration.adapter == "command":
                    continue
                current = configuration.id
                progress.note(f"{current}: enumerating the reference law")
                cwd = None if folder is None else str(folder.absolute())
                worker.call("open", **opening_of(protocol, configuration).fields(), cwd=cwd)
                law = _law(worker.call("law"), current)
                if cross_check:
                    progress.note(f"{current}: enumerating it again by the definition")
                    _compare(law, _law(worker.call("law", naive=True), current), current)
                laws[current] = law
                progress.note(f"{current}: {len(law):,} outcomes")
    except (WorkerLost, WorkerRefused, OSError) as error:
        raise EngineFailed(
            f"the oracle failed on {current or 'start'}: {error}",
            where=f"protocol.json#/configurations ({current})" if current else str(launch.python),
            next_step=f"prereg build {build}",
        ) from None
    return laws


def _law(reply: Any, name: str) -> tuple[Mass, ...]:
    try:
        law = tuple(Mass(outcome=outcome_from(m["outcome"]), p=float(m["p"])) for m in reply["law"])
    except (KeyError, TypeError, ValueError) as error:
        raise EngineFailed(f"the oracle of {name} sent no law: {error!r}") from None
    total = math.fsum(m.p for m in law)
    if not all(0 < m.p <= 1 for m in law) or abs(total - 1) > 1e-9:
        raise EngineFailed(f"the law of {name} is none: it sums to {total!r}")
    return law


def _compare(fast: tuple[Mass, ...], slow: tuple[Mass, ...], name: str) -> None:
    a, b = ({dumps(to_json(m.outcome)): m.p for m in law} for law in (fast, slow))
    worst = max(a.keys() | b.keys(), key=lambda key: abs(a.get(key, 0.0) - b.get(key, 0.0)))
    gap = abs(a.get(worst, 0.0) - b.get(worst, 0.0))
    if gap > AGREEMENT:
        raise EngineFailed(
            f"the two oracles disagree on {name}: {worst.decode()} has {a.get(worst, 0.0)!r} and "
            f"{b.get(worst, 0.0)!r}"
        )
