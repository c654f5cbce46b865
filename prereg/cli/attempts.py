"""Attempts at units and second results of shards, as `collect` and `status` show them (formats, 21)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from prereg.cli.output import number, say, table

if TYPE_CHECKING:
    from prereg.model.attempts import Copies, Tried


def tried_json(tried: Mapping[str, Tried]) -> dict[str, Any]:
    """Every unit that failed, and those of them that are tried again."""
    return {
        "units": {
            unit: {"attempt": one.attempt, "over": one.over, "cause": one.cause, "reason": one.reason}
            for unit, one in sorted(tried.items())
        },
        "tried_again": sorted(unit for unit, one in tried.items() if one.attempt > 1),
    }


def copies_json(copies: Mapping[str, Copies]) -> dict[str, dict[str, int]]:
    """Second results and how many of their draws or leaves differ, by unit."""
    return {unit: {"copies": one.copies, "differing": one.differing} for unit, one in sorted(copies.items())}


def show_attempts(
    tried: Mapping[str, Tried], allowed: int, *, complete: bool, left_open: Collection[str] = ()
) -> None:
    """A table of the units that were, or will be, tried again, and what came of it; nothing without one.

    `complete` is whether nothing is left to be collected.
    """

    def now(unit: str, one: Tried) -> str:
        if one.over:
            return "left open" if unit in left_open else "INVALID"
        return "stored whole" if complete else "not over yet"

    again = [(unit, one) for unit, one in sorted(tried.items()) if one.attempt > 1]
    if again:
        table(
            "Units tried again, whole and on the same seeds",
            ("unit", "attempt", "now", "last failure"),
            [
                (unit, f"{one.attempt} of {allowed}", now(unit, one), f"{one.cause}: {one.reason}")
                for unit, one in again
            ],
        )


def show_copies(copies: Mapping[str, Copies]) -> None:
    """A table of second results, and a word on those that were not the same; nothing without one."""
    if not copies:
        return
    table(
        "Second results of shards, compared with the stored ones and never merged",
        ("unit", "second results", "draws or leaves that differ"),
        [(unit, number(one.copies), number(one.differing)) for unit, one in sorted(copies.items())],
    )
    if any(one.differing for one in copies.values()):
        say("The engine did not return the same for the same seed.")
