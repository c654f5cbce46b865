"""Laws of plain sampling beside a configuration's own: what they would be without some of its features."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from prereg.codec.convert import outcome_from
from prereg.collect.choices import ARMS, SILENCE, Walk, opened_lanes, walk_arm
from prereg.collect.lanes import Opening
from prereg.collect.worker import Worker, WorkerRefused
from prereg.model.law import Outcome
from prereg.model.tree import Tree

RUNS = 1500
"""Engine runs at most, where there is no oracle; a distance counts what is then unexplored as none."""

Law = Mapping[Outcome, float]


def laws_without(
    walk: Walk,
    build: str | Path,
    without: Mapping[str, Mapping[str, Any]],
    law_of: Callable[[Tree], Law],
) -> dict[str, Law]:
    """The plain law under each of the sets of features in `without`, by its name.

    It is the oracle's, or as much as the off arm's walk finds where there is none. A set that the engine's
    adapter refuses has no entry. Raises as `prereg.collect.choices.walk_arms` does.
    """
    found: dict[str, Law] = {}
    with opened_lanes(walk, build, 1) as (lanes, prompt):
        worker = lanes.workers[0]
        for name, features in without.items():
            changed = replace(
                walk, configuration={**walk.configuration, "features": dict(features)}, runs=RUNS
            )
            try:
                Opening(configuration=changed.configuration, model=walk.model, prompt=prompt).on(worker)
                found[name] = _law(changed, worker, law_of)
            except WorkerRefused:
                continue
    return found


def _law(walk: Walk, worker: Worker, law_of: Callable[[Tree], Law]) -> Law:
    try:
        value = worker.call("law", silence=SILENCE)
    except WorkerRefused:
        return law_of(walk_arm(walk, ARMS[0], worker, lambda arm, leaves: None))
    return {outcome_from(mass["outcome"]): float(mass["p"]) for mass in value["law"]}
