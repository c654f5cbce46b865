"""Step 12: the registered predictions, under every completion of what was lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

VERDICTS = {
    "channel-S": ("INVALID", "VOID", "INCONCLUSIVE", "FAILS", "NOT_REJECTED"),
    "event-gap": ("INVALID", "DIFFERS", "NOT_REJECTED"),
    "exact": ("INVALID", "VOID", "INCONCLUSIVE", "DEPARTS", "EQUAL_WITHIN_TOLERANCE"),
    "records": ("INCOMPLETE", "INVALID", "VOID", "INCONCLUSIVE", "FAILS", "NOT_REJECTED"),
    "hypothesis": ("INVALID", "VOID", "NOT_COMPATIBLE", "COMPATIBLE"),
}
"""The verdicts of each rule; channels other than that of draws are rules of their own."""


def channel(claim: Mapping[str, Any]) -> str:
    """The channel whose verdicts a claim speaks of."""
    return str(claim.get("channel", "draws"))


def rule_of(claim: Mapping[str, Any], decision: str) -> str:
    """The rule whose verdicts a claim names; ``decision`` is the study's own, for draws."""
    of = channel(claim)
    return decision if of == "draws" else of


def named(claim: Mapping[str, Any]) -> list[str]:
    """The configurations that a claim names."""
    return [claim["configuration"]] if claim["kind"] == "verdict" else list(claim["configurations"])


def _status(holds: list[bool]) -> str:
    if all(holds):
        return "HELD"
    return "NOT_DETERMINED" if any(holds) else "FAILED"


def status(claim: Mapping[str, Any], verdicts: Mapping[str, str], rule: str) -> str:
    """``HELD``, ``FAILED`` or ``NOT_DETERMINED``.

    A claim about ``INVALID`` takes a lost configuration for what it is; any other claim lets it have been
    any other verdict of the rule.
    """
    others = [verdict for verdict in VERDICTS[rule] if verdict != "INVALID"]
    if claim["kind"] == "verdict":
        verdict, wanted = verdicts[claim["configuration"]], claim["in"]
        if verdict == "INVALID" and "INVALID" not in wanted:
            return _status([completion in wanted for completion in others])
        return _status([verdict in wanted])
    found = [verdicts[name] for name in claim["configurations"]]
    wanted = claim["verdict"]
    least = found.count(wanted)
    # Every lost configuration may or may not have had the verdict, so each count between is possible.
    open_ones = found.count("INVALID") if wanted in others else 0
    low, high = claim.get("at_least", 0), claim.get("at_most", len(found))
    return _status([low <= count <= high for count in range(least, least + open_ones + 1)])
