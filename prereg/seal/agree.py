"""Where two decision files do not agree (docs/formats.md section 12)."""

from __future__ import annotations

from typing import Any

TOLERANCE = 1e-10
"""Numbers of two decision files agree within this."""


def differences(one: Any, two: Any, at: str = "") -> list[str]:
    """Where two JSON values differ, as pointer and both values; numbers agree within TOLERANCE."""
    if isinstance(one, dict) and isinstance(two, dict) and one.keys() == two.keys():
        return [d for name in one for d in differences(one[name], two[name], f"{at}/{name}")]
    if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        return [
            d for i, (a, b) in enumerate(zip(one, two, strict=True)) for d in differences(a, b, f"{at}/{i}")
        ]
    if _is_number(one) and _is_number(two):
        same = abs(one - two) <= TOLERANCE
    else:
        same = type(one) is type(two) and one == two
    return [] if same else [f"{at or '/'}: {one!r:.60} became {two!r:.60}"]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
