"""Attempts, second results and ceilings in words, beside the decision they concern (section 21)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from prereg.model.attempts import Copies, tried
from prereg.model.exact import ExactDecision
from prereg.model.seal import Entry
from prereg.model.study import Protocol
from prereg.model.verdict import Decision
from prereg.report.words import EXACT, VERDICTS, Word

LEFT_OPEN = Word(
    "open",
    "?",
    "A unit was lost to a ceiling of time, and the protocol leaves what it takes open: a missing outcome, "
    "bounded both ways.",
)
"""INCONCLUSIVE, where the reason is a ceiling."""


def word_of(decision: Decision | ExactDecision) -> Word:
    """How the verdict of a decision is shown."""
    if "ceiling" in decision.reasons:
        return LEFT_OPEN
    return (VERDICTS if isinstance(decision, Decision) else EXACT)[decision.verdict]


def tallies(
    decisions: Iterable[Decision | ExactDecision], order: Mapping[str, Word]
) -> list[tuple[str, int, Word]]:
    """How often each verdict occurs, in that order; what a ceiling left open is counted apart."""
    found: list[tuple[str, Word]] = [(d.verdict, word_of(d)) for d in decisions]
    known = [
        (v, w) for v, word in order.items() for w in ((word, LEFT_OPEN) if v == "INCONCLUSIVE" else (word,))
    ]
    return [(v, found.count((v, word)), word) for v, word in known if (v, word) in found]


def beside(decision: Decision | ExactDecision, arms: tuple[str, str]) -> list[str]:
    """What is told of the attempts and the second results of each arm that has any; `arms` are off and on."""
    if decision.attempts is None or decision.duplicates is None:
        return []
    one, again = ("draw", "drawn") if isinstance(decision, Decision) else ("leaf", "walked")
    rows = zip(
        arms,
        (decision.attempts.off, decision.attempts.on),
        (decision.duplicates.off, decision.duplicates.on),
        strict=True,
    )
    told = []
    for arm, attempt, copies in rows:
        parts = ([_times(attempt)] if attempt > 1 else []) + _second(copies, one, again)
        if parts:
            told.append(f"{arm}: {', '.join(parts)}")
    return told


def differing(decision: Decision | ExactDecision) -> int:
    """Draws or leaves of both arms that came out differently when they were drawn again."""
    found = decision.duplicates
    return 0 if found is None else found.off.differing + found.on.differing


def _times(attempt: int) -> str:
    return "tried twice" if attempt == 2 else f"tried {attempt} times"


def _second(copies: Copies, one: str, again: str) -> list[str]:
    if copies.copies == 0:
        return []
    if copies.differing == 0:
        shards = "1 shard was" if copies.copies == 1 else f"{copies.copies:,} shards were"
        return [f"{shards} {again} again and came out the same"]
    many = {"draw": "draws", "leaf": "leaves"}[one]
    if copies.differing == 1:
        return [f"1 {one} came out differently when it was {again} again"]
    return [f"{copies.differing:,} {many} came out differently when they were {again} again"]


def lost(entries: Sequence[Entry], protocol: Protocol) -> list[tuple[str, str]]:
    """The units that are lost for good, with the reason of their last failure."""
    units = tried(entries, protocol.attempts)
    return [(unit, one.reason or "") for unit, one in units.items() if one.over]


def tried_again(entries: Sequence[Entry], protocol: Protocol) -> list[tuple[str, int, str]]:
    """The failures after which a unit was tried again: the unit, the attempt that failed, and why."""
    ends = {unit: one for unit, one in tried(entries, protocol.attempts).items() if one.over}
    found = [
        (e.body["unit"], e.body["attempt"], e.body["reason"]) for e in entries if e.type == "unit-invalid"
    ]
    return [
        (unit, attempt, reason)
        for unit, attempt, reason in found
        if unit not in ends or attempt < ends[unit].attempt
    ]
