"""A sealed study as the later steps use it, and the units that its plan has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

EXACT_REQUESTS = 4
"""Seeded requests of a unit of an exact stage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A unit and its shards, as planned."""

    id: str
    configuration: str
    arm: str
    drafter: bool
    """Whether anything may be proposed: the arm speculates and the configuration has a drafter."""
    environment: str
    """The sealed fingerprint of its build."""
    first: int
    """Its first seed."""
    requests: int
    rows: int
    shard_requests: int
    exact: bool = False
    """Whether it is a tree of choices, whose lines are leaves and not draws."""

    @property
    def shards(self) -> int:
        """Shards of the unit."""
        return -(-self.requests // self.shard_requests)

    def span(self, shard: int) -> tuple[int, int]:
        """The half-open interval of a shard's requests."""
        first = shard * self.shard_requests
        return first, min(first + self.shard_requests, self.requests)


@dataclass(slots=True, kw_only=True)
class Study:
    """A sealed study, checked."""

    id: str
    protocol: dict[str, Any]
    blocks: list[dict[str, Any]]
    events: dict[str, Any]
    """By configuration: ``reference`` and ``events``; in edition 2 also ``hypothesis`` and ``records``."""
    predicates: dict[str, dict[str, Any]]
    """The rule of each predicate, by id, in the file's order."""
    predictions: list[dict[str, Any]]
    off: str
    on: str
    units: dict[str, Unit] = field(default_factory=dict)
    registered: dict[str, str] = field(default_factory=dict)
    """The mechanism hypothesis of each registered configuration."""

    @property
    def edition(self) -> int:
        """The edition of the formats: 2 or 3, or 1 where the protocol says nothing."""
        return int(self.protocol.get("edition", 1))

    @property
    def arms(self) -> tuple[str, str]:
        """The reference arm and the test arm."""
        return self.off, self.on

    @property
    def configurations(self) -> list[dict[str, Any]]:
        """All configurations in the protocol's order."""
        value: list[dict[str, Any]] = self.protocol["configurations"]
        return value

    def stages(self, channel: str) -> list[dict[str, Any]]:
        """The stages of a channel, ``draws`` or ``exact``, in order."""
        return [stage for stage in self.protocol["stages"] if stage.get("channel", "draws") == channel]

    @property
    def drawn(self) -> list[dict[str, Any]]:
        """The configurations of the stages of draws, in the protocol's order."""
        names = {name for stage in self.stages("draws") for name in stage["configurations"]}
        return [c for c in self.configurations if c["id"] in names]

    @property
    def walked(self) -> list[dict[str, Any]]:
        """The configurations of the exact stage, in the stage's order."""
        by_id = {c["id"]: c for c in self.configurations}
        return [by_id[name] for stage in self.stages("exact") for name in stage["configurations"]]

    @property
    def tested(self) -> list[dict[str, Any]]:
        """The configurations on which the premise is tested, in the order of the exact stage."""
        if not self.stages("exact") or self.protocol["exact"]["premise_alpha"] is None:
            return []
        drawn = {c["id"] for c in self.drawn}
        return [c for c in self.walked if c["id"] in drawn]

    @property
    def hypothesised(self) -> list[dict[str, Any]]:
        """The registered configurations of the stages of draws, in the protocol's order."""
        return [c for c in self.drawn if c["id"] in self.registered]

    def claimable(self, channel: str) -> set[str]:
        """The configurations that a claim of a channel may speak of."""
        if channel == "hypothesis":
            return {c["id"] for c in self.hypothesised}
        if channel == "records":
            return {c["id"] for c in self.drawn if "records" in c}
        return {name for stage in self.stages(channel) for name in stage["configurations"]}

    def pair(self, configuration: str, channel: str) -> tuple[str, str]:
        """The units of a configuration in its stage of a channel: of the off arm and of the on arm."""
        stage = next(s["id"] for s in self.stages(channel) if configuration in s["configurations"])
        return f"{stage}.{configuration}.{self.off}", f"{stage}.{configuration}.{self.on}"
