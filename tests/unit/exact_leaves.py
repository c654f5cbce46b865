"""The trees of the small exact study, written down as a collector would record them; no engine runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prereg.codec.canonical import digest
from prereg.model.law import Decoded
from prereg.model.plan import Shard
from prereg.model.record import Counters, LeafRecord
from prereg.model.tree import (
    ClosedCheck,
    PathCheck,
    RandomnessCheck,
    RefillCheck,
    TreeAdmission,
    TreeMeta,
    WalkCheck,
)

FIRST = {0: 0.5, 1: 0.5}
SECOND = {0: 0.25, 1: 0.75}
"""The law of `same`: two tokens, drawn apart."""
SKEWED = {0: 0.75, 1: 0.25}
"""The second token of `other` with speculation on."""


def leaves_of(seal: str, shard: Shard) -> list[LeafRecord]:
    """The tree of one unit, in order of choices."""
    on = shard.unit.arm == "on"
    second = SKEWED if on and shard.unit.configuration == "other" else SECOND
    found = []
    for i, p in FIRST.items():
        for j, q in second.items():
            found.append(
                LeafRecord(
                    seal=seal,
                    unit=shard.unit.id,
                    shard=0,
                    attempt=1,
                    leaf=len(found),
                    choices=(i, j),
                    kinds="tt",
                    p=(p, q),
                    outcome=Decoded(tokens=(i, j), finish="length"),
                    counters=Counters(
                        proposals=2 * on, verifications=int(on), accepted=int(on and i == j == 0)
                    ),
                    digest=digest(f"{i}".encode()),
                    closed=j == 1,
                    filled=int(on and i != 0),
                )
            )
    return found


def admission(closed: int, filled: int, **changes: Any) -> TreeAdmission:
    """Checks that all went well."""
    checks: dict[str, Any] = {
        "walk": WalkCheck(differences=0, ok=True),
        "replay": PathCheck(checked=4, differences=0, ok=True),
        "refill": RefillCheck(eligible=filled, checked=2 * filled, differences=0, expanded=False, ok=True),
        "closed": ClosedCheck(closed=closed, checked=closed, differences=0, reopened=False, ok=True),
        "randomness": RandomnessCheck(unaccounted=0, ok=True),
        "interference": PathCheck(checked=4, differences=0, ok=True),
    }
    return TreeAdmission(**{**checks, **changes})


def tree_meta(leaves: Sequence[LeafRecord], **changes: Any) -> TreeMeta:
    closed = sum(leaf.closed for leaf in leaves)
    filled = sum(leaf.filled > 0 and not leaf.closed for leaf in leaves)
    checks = admission(closed, filled, **changes)
    return TreeMeta(runs=len(leaves) - closed, unexplored=0.0, admission=checks)
