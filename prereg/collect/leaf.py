"""A leaf of a tree of choices, from the line that a worker sent."""

from __future__ import annotations

from typing import Any

from prereg.codec.convert import outcome_from
from prereg.model.tree import TreeLeaf


def leaf_of(value: Any) -> TreeLeaf:
    """A leaf as a worker sends it."""
    counters = value["counters"]
    return TreeLeaf(
        choices=tuple(value["choices"]),
        p=tuple(float(p) for p in value["p"]),
        outcome=outcome_from(value["outcome"]),
        proposals=int(counters["proposals"]),
        accepted=int(counters["accepted"]),
        verifications=int(counters["verifications"]),
        kinds=str(value["kinds"]),
        digest=str(value["digest"]),
        closed=bool(value["closed"]),
        filled=int(value["filled"]),
    )
