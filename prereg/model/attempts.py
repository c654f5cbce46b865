"""Attempts at a unit, and second results of a shard (docs/formats.md section 21)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from prereg.model.seal import Entry

Cause = Literal["engine", "request-ceiling", "unit-ceiling", "study-ceiling"]
CEILINGS: tuple[Cause, ...] = ("request-ceiling", "unit-ceiling", "study-ceiling")
_FINAL: tuple[Cause, ...] = ("unit-ceiling", "study-ceiling")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """How often a unit was tried, as a ledger tells it."""

    attempt: int = 1
    """The present attempt; of a unit that is over, the one it ended in."""
    over: bool = False
    """Whether it is lost for good: INVALID, or left open."""
    cause: Cause | None = None
    """Of the last failure; None before edition 3 too."""
    reason: str | None = None
    """Of the last failure."""

    def is_left_open(self, on_ceiling: str) -> bool:
        """Whether its loss leaves a verdict open instead of INVALID; `on_ceiling` is the protocol's."""
        return self.over and on_ceiling == "INCONCLUSIVE" and self.cause in CEILINGS


def tried(entries: Sequence[Entry], allowed: int) -> dict[str, Tried]:
    """The units that failed at least once, each as it stands after `entries`.

    `allowed` is the protocol's `attempts`; every other unit is in its first attempt.
    """
    found: dict[str, Tried] = {}
    for entry in entries:
        if entry.type == "unit-invalid":
            unit = entry.body["unit"]
            found[unit] = after_failure(found.get(unit, Tried()), entry.body, allowed)
    return found


def after_failure(before: Tried, body: Mapping[str, Any], allowed: int) -> Tried:
    """How a unit stands after a `unit-invalid` entry with this body; `allowed` as for `tried`."""
    if before.over:
        return before  # no such entry is sound in edition 3; in earlier ones the first reason given counts
    cause: Cause | None = body.get("cause")
    over = cause in _FINAL or before.attempt >= allowed
    attempt = before.attempt if over else before.attempt + 1
    return Tried(attempt=attempt, over=over, cause=cause, reason=body["reason"])


def unit_folder(unit: str, attempt: int) -> str:
    """The name, below records/, of the folder of a unit's attempt."""
    return unit if attempt == 1 else f"{unit}.attempt-{attempt}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """The attempt that counts, in the reference (off) and the test (on) arm."""

    off: int
    on: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """Second results of a unit's shards."""

    copies: int
    """`duplicate` entries, and shards of an earlier attempt that the one that counts stored too."""
    differing: int
    """Draws, or leaves, of which the two results are not the same."""

    def __add__(self, other: Copies) -> Copies:
        return Copies(copies=self.copies + other.copies, differing=self.differing + other.differing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicates:
    """Second results in the reference (off) and the test (on) arm."""

    off: Copies
    on: Copies


def copies_of(entries: Sequence[Entry]) -> dict[str, Copies]:
    """The second results that the ledger tells of, by unit."""
    found: dict[str, Copies] = {}
    for entry in entries:
        if entry.type == "duplicate":
            before = found.get(entry.body["unit"], Copies(copies=0, differing=0))
            found[entry.body["unit"]] = before + Copies(copies=1, differing=entry.body["differing"])
    return found
