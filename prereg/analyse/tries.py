"""Attempts, second results and ceilings beside the decisions (docs/formats.md section 21)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from prereg.analyse.units import units_of
from prereg.model.attempts import CEILINGS, Attempts, Copies, Duplicates, Tried, copies_of, tried
from prereg.model.exact import ExactDecision
from prereg.model.seal import Entry
from prereg.model.study import Channel, Protocol
from prereg.model.verdict import Decision, Decisions

D = TypeVar("D", Decision, ExactDecision)
ONCE = Tried()
"""A unit that never failed."""
NO_COPIES = Copies(copies=0, differing=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tries:
    """What a ledger tells of the units, by their ids; one that is not there went well, once."""

    tried: Mapping[str, Tried]
    copies: Mapping[str, Copies]

    def attempt(self, unit: str) -> int:
        """The attempt of a unit that counts."""
        return self.tried.get(unit, ONCE).attempt

    def by_ceiling(self, unit: str) -> bool:
        """Whether a unit is lost for good, at last to a ceiling."""
        one = self.tried.get(unit, ONCE)
        return one.over and one.cause in CEILINGS


NO_TRIES = Tries(tried={}, copies={})


def tries_of(entries: Sequence[Entry], protocol: Protocol, redrawn: Mapping[str, Copies]) -> Tries:
    """What the ledger tells of attempts and second results, at the end of its last `collection-ended`.

    `redrawn` are the shards of earlier attempts that were drawn again, by unit.
    """
    last = max((i for i, e in enumerate(entries, 1) if e.type == "collection-ended"), default=0)
    collected = entries[:last]
    told = copies_of(collected)
    copies = {unit: told.get(unit, NO_COPIES) + redrawn.get(unit, NO_COPIES) for unit in {*told, *redrawn}}
    return Tries(tried=tried(collected, protocol.attempts), copies=copies)


def told(protocol: Protocol, decisions: Decisions, tries: Tries, gone: Collection[str]) -> Decisions:
    """The decisions of a study of edition 3 with what section 21 adds; those of an earlier one as they are.

    `gone` are the units that are lost or missing. A configuration that a ceiling left open is called
    INCONCLUSIVE last of all: whatever else follows from a lost unit has been said by then.
    """
    if not protocol.since(3):
        return decisions
    exact = decisions.exact
    return replace(
        decisions,
        configurations=tuple(_told(protocol, d, "draws", tries, gone) for d in decisions.configurations),
        exact=None
        if exact is None
        else replace(
            exact,
            configurations=tuple(_told(protocol, d, "exact", tries, gone) for d in exact.configurations),
        ),
    )


def _told(protocol: Protocol, decision: D, channel: Channel, tries: Tries, gone: Collection[str]) -> D:
    units = units_of(protocol, protocol.configuration(decision.id), channel)
    attempts, duplicates = _beside(units, tries)
    decision = replace(decision, attempts=attempts, duplicates=duplicates)
    if not _left_open(protocol, units, tries, gone):
        return decision
    return replace(decision, verdict="INCONCLUSIVE", reasons=("ceiling",))


def _beside(units: tuple[str, str], tries: Tries) -> tuple[Attempts, Duplicates]:
    off, on = units
    return (
        Attempts(off=tries.attempt(off), on=tries.attempt(on)),
        Duplicates(off=tries.copies.get(off, NO_COPIES), on=tries.copies.get(on, NO_COPIES)),
    )


def _left_open(protocol: Protocol, units: tuple[str, str], tries: Tries, gone: Collection[str]) -> bool:
    """Whether the protocol leaves a configuration open: each unit that it lost, it lost to a ceiling."""
    lost = [unit for unit in units if unit in gone]
    return (
        protocol.ceilings.on_ceiling == "INCONCLUSIVE"
        and bool(lost)
        and all(tries.by_ceiling(unit) for unit in lost)
    )
