"""Step 13: what the first analysis claims, against what was derived."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from audits.decide import Derived, Member
from audits.jsonc import canonical, escape_pointer
from audits.premise import Tested

TOLERANCE = 1e-10
"""How far two numbers of agreeing decision files may be apart."""


def _show(value: Any) -> str:
    text = canonical(value).decode()
    return text if len(text) <= 80 else text[:77] + "..."


def differences(claimed: Any, derived: Any, at: str = "") -> Iterator[str]:
    """Where two JSON values differ, each with its JSON pointer."""
    if isinstance(derived, dict) and isinstance(claimed, dict):
        for key in sorted(derived.keys() | claimed.keys()):
            here = f"{at}/{escape_pointer(key)}"
            if key not in claimed or key not in derived:
                yield f"{here}: {'not claimed' if key not in claimed else 'claimed, but not derived'}"
            else:
                yield from differences(claimed[key], derived[key], here)
    elif isinstance(derived, list) and isinstance(claimed, list):
        if len(derived) != len(claimed):
            yield f"{at}: claimed {len(claimed)} items, derived {len(derived)}"
        for i, (one, other) in enumerate(zip(claimed, derived, strict=False)):
            yield from differences(one, other, f"{at}/{i}")
    elif _number(derived) and _number(claimed):
        if abs(derived - claimed) > TOLERANCE:
            yield f"{at}: claimed {_show(claimed)}, derived {_show(derived)}"
    elif type(derived) is not type(claimed) or derived != claimed:
        yield f"{at}: claimed {_show(claimed)}, derived {_show(derived)}"


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _ties(family: tuple[Member, ...], value: str, event: Any, complement: Any) -> bool:
    """Whether the claimed event attains the maximum but for rounding."""
    best = max(getattr(member, value) for member in family)
    return any(
        (member.event, member.complement) == (event, complement)
        and abs(getattr(member, value) - best) <= TOLERANCE
        for member in family
    )


def compare(claimed: dict[str, Any], derived: Derived) -> list[str]:
    """The differences of one configuration, of either channel.

    Two events whose gaps are equal in real arithmetic may come out in either order once rounded, so the
    event that attains a maximum is compared by its value and not by its name alone.
    """
    row = derived.row
    if derived.family and _ties(derived.family, "gap", claimed["D_event"], claimed["D_complement"]):
        row = row | {"D_event": claimed["D_event"], "D_complement": claimed["D_complement"]}
    both = claimed.get("calibration"), row.get("calibration")
    if derived.family and both[0] is not None and both[1] is not None:
        names = {key: both[0][key] for key in ("event", "complement")}
        if _ties(derived.family, "excess", names["event"], names["complement"]):
            row = row | {"calibration": both[1] | names}
    for (member, key), attained in derived.attained.items():
        event = (claimed.get(member) or {}).get(key)
        if event in attained and abs(attained[event] - max(attained.values())) <= TOLERANCE:
            row = row | {member: row[member] | {key: event}}
    return list(differences(claimed, row))


def compare_premise(claimed: dict[str, Any], tested: Tested) -> list[str]:
    """The differences of one configuration's test of the premise; events may tie here too."""
    row = tested.row
    for arm, excesses in tested.excesses.items():
        event = (claimed[arm] or {}).get("event")
        if event in excesses and abs(excesses[event] - max(excesses.values())) <= TOLERANCE:
            row = row | {arm: row[arm] | {"event": event}}
    return list(differences(claimed, row))


def values(value: Any) -> int:
    """How many values a JSON value holds."""
    if isinstance(value, dict):
        return sum(values(item) for item in value.values())
    if isinstance(value, list):
        return sum(values(item) for item in value)
    return 1
