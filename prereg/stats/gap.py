"""The gap of an event between two arms, from its bounds (docs/formats.md section 10)."""

from __future__ import annotations

from prereg.model.verdict import BoundRow


def gap_of(row: BoundRow, complement: bool = False) -> float:
    """L_on - U_off of a listed event or of its complement."""
    if complement:
        return (1 - row.U_on) - (1 - row.L_off)
    return row.L_on - row.U_off
