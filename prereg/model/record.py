"""Draws, shards and what is known of them (docs/formats.md section 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from prereg.model.law import Outcome, RecordEntry
from prereg.model.tree import TreeMeta

Network = Literal["cut", "not-cut"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What the pass-through drafter wrapper counted in one draw."""

    proposals: int
    """Tokens proposed by the drafter."""
    verifications: int
    """Verification steps with a nonempty proposal."""
    accepted: int
    """Proposed tokens accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One draw, bound to its seal and its place in the plan."""

    seal: str
    unit: str
    shard: int
    attempt: int
    draw: int
    seed: str
    row: int
    outcome: Outcome
    counters: Counters
    record: tuple[RecordEntry, ...] | None = None
    """What the engine returned beside the tokens, position by position; there exactly where the configuration
    has `records`. A crash has none: ()."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafRecord:
    """One leaf of a unit's tree of choices, bound to its seal and its place in the plan."""

    seal: str
    unit: str
    shard: int
    attempt: int
    leaf: int
    """Its number, in order of choices."""
    choices: tuple[int, ...]
    kinds: str
    p: tuple[float, ...]
    outcome: Outcome
    counters: Counters
    digest: str
    closed: bool
    filled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardMeta:
    schema: Literal["prereg/shard-meta/v1"] = "prereg/shard-meta/v1"
    study: str
    seal: str
    unit: str
    shard: int
    attempt: int
    first_seed: str
    requests: int
    rows: int
    draws: int
    records_sha256: str
    records_size: int
    lines_sha256: str
    lines_size: int
    environment: str
    network: Network
    started: str
    ended: str
    tree: TreeMeta | None = None
    """There exactly for a unit of an exact stage."""
