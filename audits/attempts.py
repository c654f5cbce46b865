"""Section 21: what the ledger says of the attempts at each unit, entry by entry, and where it may say so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from audits.fault import Found

Json = dict[str, Any]
Key = tuple[str, int, int]
"""A unit, an attempt at it, and a shard."""
FINAL = ("unit-ceiling", "study-ceiling")
"""The causes after which a unit is over whatever the protocol allows."""
CEILINGS = ("request-ceiling", *FINAL)
"""The causes that are a ceiling."""
MOST = 9
"""The most attempts that a protocol can allow."""


def key_of(body: Json) -> Key:
    """The three that an entry names."""
    return body["unit"], body["attempt"], body["shard"]


def stem_of(key: Key) -> str:
    """Where the files of a shard lie, without their endings."""
    unit, attempt, shard = key
    return f"records/{unit}{f'.attempt-{attempt}' if attempt > 1 else ''}/{shard:05d}"


@dataclass(frozen=True, slots=True)
class Copy:
    """A second result for a shard, as an entry ``duplicate`` tells of it."""

    place: str
    """The entry."""
    body: Json


@dataclass(slots=True)
class Attempts:
    """The attempts so far, as a walk through the ledger finds them."""

    most: int = MOST
    """The protocol's ``attempts``; the most there can be if it is not known."""
    shards: dict[str, int] = field(default_factory=dict)
    """How many shards each unit of the plan has; empty if the plan is not known."""
    failed: Counter[str] = field(default_factory=Counter)
    """The ``unit-invalid`` entries by unit."""
    over: dict[str, str] = field(default_factory=dict)
    """The cause of the last of them, of every unit that is over."""
    begun: set[Key] = field(default_factory=set)
    """What an ``attempt`` named since the last ``collection-started``."""
    copies: dict[Key, list[Copy]] = field(default_factory=dict)
    """The second results that were told of, in order; the first is number 1."""

    def present(self, unit: str) -> int:
        """The present attempt of a unit; of one that is over, the attempt it ended in."""
        return self.failed[unit] + (unit not in self.over)

    def enter(self, entry: Json, stored: Collection[Key], place: str, found: Found) -> None:
        """An ``attempt``, ``shard-stored``, ``unit-invalid`` or ``duplicate`` of edition 3.

        ``stored`` is what the ledger stored before.
        """
        kind, body = entry["type"], entry["body"]
        unit, attempt = body["unit"], body["attempt"]
        if unit in self.over:
            what = f"{unit} is over: no `{kind}` of it stands after that"
            found.fault(what, file=place, pointer="/body/unit")
        elif kind != "duplicate" and attempt != self.present(unit):
            what = f"is {attempt}; the present attempt of {unit} is {self.present(unit)}"
            found.fault(what, file=place, pointer="/body/attempt")
        if kind == "unit-invalid" and unit not in self.over and self._whole(unit, stored):
            what = f"all shards of {unit} are stored in attempt {self.present(unit)}: it did not fail"
            found.fault(what, file=place, pointer="/body/unit")
        if kind == "unit-invalid":
            self._fail(body, place, found)
            return
        key = key_of(body)
        named = f"shard {key[2]} of {unit} in attempt {attempt}"
        if kind == "attempt":
            if key in self.begun:
                what = f"{named} was begun before since the last collection-started"
                found.fault(what, file=place, pointer="/body/shard")
            if key in stored:
                found.fault(f"{named} was stored before", file=place, pointer="/body/shard")
            self.begun.add(key)
        elif kind == "shard-stored" and key not in self.begun:
            what = f"no `attempt` names {named} since the last collection-started"
            found.fault(what, file=place, pointer="/body/attempt")
        elif kind == "duplicate":
            if key not in stored:
                found.fault(f"{named} was not stored before", file=place, pointer="/body/shard")
            self.copies.setdefault(key, []).append(Copy(place, body))

    def _whole(self, unit: str, stored: Collection[Key]) -> bool:
        """Whether a unit of the plan has all its shards stored in its present attempt."""
        present = self.present(unit)
        planned = range(self.shards.get(unit, 0))
        return bool(planned) and all((unit, present, shard) in stored for shard in planned)

    def _fail(self, body: Json, place: str, found: Found) -> None:
        unit, cause = body["unit"], body.get("cause")
        self.failed[unit] += 1
        if cause is None:
            found.fault("misses 'cause', which edition 3 asks for", file=place, pointer="/body")
        if cause in FINAL or body["attempt"] >= self.most:
            self.over[unit] = cause or ""

    def told(self, unit: str) -> Json:
        """How many duplicates of a unit there are, of every attempt, and how much of them differs."""
        copies = [copy for key, some in self.copies.items() if key[0] == unit for copy in some]
        return {"copies": len(copies), "differing": sum(copy.body["differing"] for copy in copies)}
