"""Attempts, shards and their second results as a ledger tells them, entry by entry (step 6; formats, 21).

Before edition 3 there is one attempt, and what is told of a unit after it was lost is let stand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from prereg.errors import VerificationFailed
from prereg.model.attempts import Tried, after_failure
from prereg.model.plan import Shard
from prereg.model.seal import Entry
from prereg.model.study import Protocol
from prereg.seal.shard_set import Place


@dataclass(slots=True, kw_only=True)
class Attempted:
    """What the entries so far say of the units; each method takes the next one and its place, `line`."""

    protocol: Protocol
    planned: Mapping[tuple[str, int], Shard]
    units: dict[str, Tried] = field(default_factory=dict)
    """The units that failed."""
    stored: dict[Place, Mapping[str, Any]] = field(default_factory=dict)
    """The bodies of the `shard-stored` entries of every attempt."""
    begun: set[Place] = field(default_factory=set)
    """What `attempt` entries named since the last `collection-started`."""

    def take(self, entry: Entry, line: str) -> None:
        """Check an entry of collection. Raises VerificationFailed with the field."""
        body = entry.body
        match entry.type:
            case "collection-started":
                self.begun.clear()
            case "attempt":
                self._attempt(body, line)
            case "shard-stored":
                self._stored(body, line)
            case "duplicate":
                self._duplicate(body, line)
            case "unit-invalid":
                self._failed(body, line)
            case "collection-ended":
                self._ended(body, line)
            case _:
                raise AssertionError(f"{entry.type} is no entry of collection")

    def standing(self, unit: str) -> Tried:
        """How a unit stands after the entries so far."""
        return self.units.get(unit, Tried())

    def _attempt(self, body: Mapping[str, Any], line: str) -> None:
        place = self._place(body, line)
        self._present(body, line)
        if place in self.stored:
            raise VerificationFailed("the shard is stored in this attempt", where=f"{line}/body/shard")
        if place in self.begun:
            raise VerificationFailed("was said before in this run", where=f"{line}/body/shard")
        self.begun.add(place)

    def _stored(self, body: Mapping[str, Any], line: str) -> None:
        place = self._place(body, line)
        self._present(body, line)
        if place in self.stored:
            raise VerificationFailed("the shard was stored before", where=f"{line}/body/shard")
        self._as_planned("draws", body, line)
        if self.protocol.since(3) and place not in self.begun:
            raise VerificationFailed(
                "no entry `attempt` of this run says that it was begun", where=f"{line}/body/shard"
            )
        self.stored[place] = body

    def _duplicate(self, body: Mapping[str, Any], line: str) -> None:
        place = self._place(body, line)
        self._not_over(body, line)
        if place not in self.stored:
            raise VerificationFailed("the shard is not stored in this attempt", where=f"{line}/body/shard")
        self._as_planned("lines", body, line)

    def _failed(self, body: Mapping[str, Any], line: str) -> None:
        self._present(body, line)
        if ("cause" in body) != self.protocol.since(3):
            what = "belongs to edition 3" if "cause" in body else "is missing"
            raise VerificationFailed(what, where=f"{line}/body/cause")
        if self.protocol.since(3) and self._is_whole(body["unit"], body["attempt"]):
            # A finished unit could be drawn again, and an engine that does not repeat itself be fished.
            raise VerificationFailed("all shards of the unit are stored", where=f"{line}/body/unit")
        self.units[body["unit"]] = after_failure(self.standing(body["unit"]), body, self.protocol.attempts)

    def _ended(self, body: Mapping[str, Any], line: str) -> None:
        over = {unit for unit, one in self.units.items() if one.over}
        if body["stored"] != len(self.stored):
            raise VerificationFailed(
                f"{len(self.stored)} shards are stored up to here", where=f"{line}/body/stored"
            )
        if set(body["invalid"]) != over:
            raise VerificationFailed(
                "is not the set of units that are invalid up to here", where=f"{line}/body/invalid"
            )
        rest = [
            (unit, shard)
            for unit, shard in self.planned
            if unit not in over and (unit, self.standing(unit).attempt, shard) not in self.stored
        ]
        if body["complete"] and rest:
            unit, shard = rest[0]
            raise VerificationFailed(
                f"is true, but {len(rest)} shards are missing, the first {unit}/{shard:05d}",
                where=f"{line}/body/complete",
            )

    def _is_whole(self, unit: str, attempt: int) -> bool:
        return all((unit, attempt, shard) in self.stored for name, shard in self.planned if name == unit)

    def _place(self, body: Mapping[str, Any], line: str) -> Place:
        if (body["unit"], body["shard"]) not in self.planned:
            raise VerificationFailed("is no shard of the plan", where=f"{line}/body/shard")
        return (body["unit"], body["attempt"], body["shard"])

    def _present(self, body: Mapping[str, Any], line: str) -> None:
        self._not_over(body, line)
        present = self.standing(body["unit"]).attempt
        if body["attempt"] != present:
            raise VerificationFailed(
                f"the unit is in attempt {present}, not {body['attempt']}", where=f"{line}/body/attempt"
            )

    def _not_over(self, body: Mapping[str, Any], line: str) -> None:
        if self.protocol.since(3) and self.standing(body["unit"]).over:
            raise VerificationFailed("the unit is over: it was lost before", where=f"{line}/body/unit")

    def _as_planned(self, name: str, body: Mapping[str, Any], line: str) -> None:
        shard = self.planned[body["unit"], body["shard"]]
        if shard.channel == "draws" and body[name] != shard.draws:
            raise VerificationFailed(f"the plan says {shard.draws} draws", where=f"{line}/body/{name}")
