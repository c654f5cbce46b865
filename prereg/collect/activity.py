"""Whether features take part: equality of two arms says nothing of a feature that changes no law."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from prereg.model.law import Outcome

ACTIVE = 1e-3
"""Total variation of two plain laws above which a feature is active.

Well above the exact channel's tolerance: an engine that lost the feature under speculation must depart.
"""

NOTHING = 1e-5
"""Total variation that is no change at all: the arithmetic of float32."""


def distance(a: Mapping[Outcome, float], b: Mapping[Outcome, float]) -> float:
    """The least total variation of two laws, from the mass of each outcome that is known of either.

    What is unexplored of `b` could at most fill what it lacks beside `a`. Counted from `b`'s side, with the
    slack of `a`, it is the same number.
    """
    lacking = math.fsum(max(0.0, p - b.get(outcome, 0.0)) for outcome, p in a.items())
    return max(0.0, lacking - max(0.0, 1.0 - math.fsum(b.values())))


def lacking(names: Iterable[str], activity: Mapping[str, float], accepted: int) -> list[str]:
    """What keeps equality from meaning anything: a phrase for each feature that is not seen to be active.

    `names` are those that must be; one without an entry in `activity` is not seen to be.
    """
    found = []
    for name in names:
        tv = activity.get(name)
        if tv is None:
            found.append(f"whether {name} changes anything could not be told")
        elif tv <= NOTHING:
            found.append(f"{name} changed nothing")
        elif tv <= ACTIVE:
            found.append(f"{name} changed the law by no more than {tv:.2g}")
    return [*found, "no proposed token was accepted"] if accepted == 0 else found
