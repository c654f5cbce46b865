"""Trees of choices made by hand: what each arm of an exact stage may look like."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from audits_slow import CRASH, A, B, C, D, Json

Branch = tuple[list[int], str, list[float], Json]
"""Choices, kinds, probabilities and outcome of one leaf."""
STRANGE = {"tokens": [3], "finish": None}
"""An outcome that no tree here has, and that violates nothing."""

OFF: list[Branch] = [
    ([1, 2], "tt", [0.75, 2 / 3], A),
    ([1, 3, 0], "ttt", [0.75, 1 / 3, 1], B),
    ([2, 0], "tt", [0.25, 1], C),
]
"""The reference law: a half A, a quarter B, a quarter C."""
ON: list[Branch] = [
    ([1, 0, 2], "dat", [0.5, 1, 2 / 3], A),
    ([1, 0, 3, 0], "datt", [0.5, 1, 1 / 3, 1], B),
    ([2, 0, 0], "dat", [0.5, 0.5, 1], C),
    ([2, 1, 1, 2], "dart", [0.5, 0.5, 1, 2 / 3], A),
    ([2, 1, 1, 3, 0], "dartt", [0.5, 0.5, 1, 1 / 3, 1], B),
]
"""The same law by proposals: token 1 or 2, of which 2 is accepted half of the time."""


def tree(
    branches: list[Branch],
    proposes: bool = True,
    unexplored: float = 0,
    closed_at: tuple[int, ...] = (),
    filled_at: tuple[int, ...] = (),
    **admission: Json,
) -> Json:
    """A tree as leaf lines (without what the study says) and the ``tree`` of a meta."""
    counters = {"proposals": 2, "verifications": 1, "accepted": 1}
    leaves = [
        {
            "choices": choices, "kinds": kinds, "p": p, "outcome": outcome, "digest": "d" * 32,
            "filled": 2 * (i in filled_at), "closed": i in closed_at,
            "counters": dict(counters) if proposes else dict.fromkeys(counters, 0),
        }
        for i, (choices, kinds, p, outcome) in enumerate(branches)
    ]  # fmt: skip
    eligible = len({*filled_at} - {*closed_at})
    fine: Json = {
        "walk": {"differences": 0, "ok": True},
        "replay": {"checked": 3, "differences": 0, "ok": True},
        "refill": {
            "eligible": eligible, "checked": eligible, "differences": 0, "expanded": False, "ok": True,
        },
        "closed": {
            "closed": len(closed_at), "checked": len(closed_at), "differences": 0, "reopened": False,
            "ok": True,
        },
        "randomness": {"unaccounted": 0, "ok": True},
        "interference": {"checked": 4, "differences": 0, "ok": True},
    }  # fmt: skip
    for name, changes in admission.items():
        fine[name] = fine[name] | changes
    meta = {"runs": len(leaves) - len(closed_at), "unexplored": unexplored, "admission": fine}
    return copy.deepcopy({"leaves": leaves, "meta": meta})


def off(**options: Any) -> Json:
    return tree(options.pop("branches", OFF), proposes=False, **options)


def on(**options: Any) -> Json:
    return tree(options.pop("branches", ON), **options)


def became(outcome: Json, *places: int, branches: list[Branch] | None = None) -> list[Branch]:
    """Branches (of the on arm) some of which end in another outcome."""
    return [
        (choices, kinds, p, outcome if i in places else old)
        for i, (choices, kinds, p, old) in enumerate(ON if branches is None else branches)
    ]


def without(branches: list[Branch], *places: int) -> list[Branch]:
    return [branch for i, branch in enumerate(branches) if i not in places]


def failing(name: str, **changes: Json) -> dict[str, Json]:
    """An admission check that found differences."""
    key = "unaccounted" if name == "randomness" else "differences"
    return {name: {key: 1, "ok": False, **changes}}


def bent(at: int, choice: int, p: float, branches: list[Branch] | None = None) -> list[Branch]:
    """Branches one of which has another probability at one choice."""
    changed = copy.deepcopy(ON if branches is None else branches)
    changed[at][2][choice] = p
    return changed


def only_closed() -> Json:
    """An on arm whose one closed leaf alone has proposals."""
    closed, run = on(closed_at=(0,)), on(proposes=False)
    closed["leaves"][1:] = run["leaves"][1:]
    return closed


RARE: list[Branch] = [
    ([0], "t", [0.5], A), ([1], "t", [0.25], B), ([2], "t", [0.25 - 1e-12], C),
    ([3, 0], "tt", [1e-12, 0.5], C),
]  # fmt: skip
"""The node that is reached by choice 3 has half of its children, which weigh nearly nothing."""
HALF: list[Branch] = [([0], "t", [0.5], A), ([1], "t", [0.5], C)]
SHORT: list[Branch] = [([0], "t", [0.125], A), ([1], "t", [0.375], B), ([2], "t", [0.375], C)]
"""With an eighth unexplored, A lacks at least a quarter, and B and C have an eighth too much."""
Case = tuple[Json, Json, str, list[str]]
CASES: dict[str, Case] = {
    "equal": (off(), on(), "EQUAL_WITHIN_TOLERANCE", ["within-tolerance"]),
    "equal, the last choice closed": (
        off(closed_at=(1, 2)), on(closed_at=(1,)), "EQUAL_WITHIN_TOLERANCE", ["within-tolerance"],
    ),
    "a departure": (
        off(), on(branches=bent(3, 3, 1 / 3, bent(4, 3, 2 / 3))), "DEPARTS", ["total-variation"],
    ),
    "a witness": (off(), on(branches=became(D, 1, 4)), "DEPARTS", ["total-variation", "witness"]),
    "a witness too rare for the tolerance": (
        off(),
        on(branches=[
            ([0], "t", [0.5], A), ([1], "t", [0.25], B), ([2], "t", [0.25 - 1e-12], C),
            ([3], "t", [1e-12], D),
        ]),
        "DEPARTS", ["witness"],
    ),
    "crashes": (off(), on(branches=became(CRASH, 2)), "DEPARTS", ["total-variation"]),
    "a bounded arm": (off(branches=OFF[:2], unexplored=0.25), on(), "INCONCLUSIVE", ["interval"]),
    "both arms bounded": (
        off(branches=OFF[:2], unexplored=0.25), on(branches=ON[:2], unexplored=0.5),
        "INCONCLUSIVE", ["interval"],
    ),
    "a departure beyond what is unexplored": (
        off(branches=OFF[:2], unexplored=0.25), on(branches=became(D, 0, 1, 3)),
        "DEPARTS", ["total-variation"],
    ),
    "no witness while the off arm is bounded": (
        off(branches=OFF[:2], unexplored=0.25), on(branches=became(D, 2)), "INCONCLUSIVE", ["interval"],
    ),
    "a witness while the on arm is bounded": (
        off(), on(branches=without(became(D, 1), 4), unexplored=1 / 12), "DEPARTS",
        ["total-variation", "witness"],
    ),
    "nothing proposed": (off(), on(proposes=False), "INCONCLUSIVE", ["nothing-proposed"]),
    "only closed leaves proposed": (
        off(), only_closed(), "INCONCLUSIVE", ["nothing-proposed"],
    ),
    "nothing proposed comes before a witness": (
        off(), on(branches=became(D, 1), proposes=False), "INCONCLUSIVE", ["nothing-proposed"],
    ),
    "a leaf that goes on": (
        off(branches=[*OFF[:2], ([1, 3, 0, 5], "tttt", [0.75, 1 / 3, 1, 1e-12], C)], unexplored=0.25), on(),
        "VOID", ["tree"],
    ),
    "a node whose children disagree on the way": (
        off(), on(branches=bent(1, 0, 0.5 + 1e-12)), "VOID", ["tree"],
    ),
    "a node of two kinds": (
        off(branches=[*OFF[:1], ([1, 3, 0], "tbt", [0.75, 1 / 3, 1], B), OFF[2]]), on(), "VOID", ["tree"],
    ),
    "a root of two kinds": (off(branches=[*OFF[:2], ([2, 0], "bt", [0.25, 1], C)]), on(), "VOID", ["tree"]),
    "kinds that differ on the way": (
        off(), on(branches=[*ON[:3], ([2, 1, 1, 2], "dabt", [0.5, 0.5, 1, 2 / 3], A), ON[4]]),
        "VOID", ["tree"],
    ),
    "children that sum to more than 1": (
        off(branches=[([0, 0], "tt", [0.5, 1], A), ([0, 1], "tt", [0.5, 0.5], B), ([1], "t", [0.25], C)]),
        on(), "VOID", ["tree"],
    ),
    "children that sum to more than 1, in a bounded tree": (
        off(branches=[([0, 0], "tt", [0.25, 1], A), ([0, 1], "tt", [0.25, 1], B)], unexplored=0.5), on(),
        "VOID", ["tree"],
    ),
    "children that sum to less than 1": (
        off(branches=RARE), on(), "VOID", ["tree"],
    ),
    "half of rare children, in a bounded tree": (
        off(branches=[*RARE[:2], RARE[3]], unexplored=0.25), on(), "INCONCLUSIVE", ["interval"],
    ),
    "weights that do not sum to 1": (off(), on(branches=ON[:4]), "VOID", ["tree"]),
    "what is unexplored does not fill them up": (
        off(), on(branches=ON[:4], unexplored=0.08), "VOID", ["tree"],
    ),
    "more mass than there is": (
        off(), on(branches=[([0], "t", [1], A), ([1], "t", [1], B)]), "VOID", ["tree"],
    ),
    "more is unexplored than is left": (off(unexplored=0.25), on(), "VOID", ["tree"]),
    "a single leaf": (
        off(branches=[([], "", [], A)]), on(branches=[([], "", [], A)]), "VOID", ["oracle"],
    ),
    "the off arm is not the reference": (off(branches=HALF), on(), "VOID", ["oracle"]),
    "the off arm is off by more than 1e-6": (
        off(branches=bent(0, 1, 2 / 3 + 3e-6, bent(1, 1, 1 / 3 - 3e-6, OFF))), on(), "VOID", ["oracle"],
    ),
    "the off arm is off by less than 1e-6": (
        off(branches=bent(0, 1, 2 / 3 + 9e-7, bent(1, 1, 1 / 3 - 9e-7, OFF))), on(),
        "DEPARTS", ["total-variation"],
    ),
    "a bounded off arm that has more than the reference": (
        off(branches=[([0], "t", [0.75], A)], unexplored=0.25), on(), "VOID", ["oracle"],
    ),
    "a bounded off arm that lacks more than is unexplored": (
        off(branches=SHORT, unexplored=0.125), on(), "VOID", ["oracle"],
    ),
    "a replay that differs": (off(), on(**failing("replay")), "VOID", ["admission"]),
    "randomness beside the choices": (off(**failing("randomness")), on(), "VOID", ["admission"]),
    "no replay": (off(replay={"checked": 0}), on(), "VOID", ["admission"]),
    "no interference looked at": (off(), on(interference={"checked": 0}), "VOID", ["admission"]),
    "no refill looked at where some could be": (
        off(), on(filled_at=(1,), refill={"checked": 0}), "VOID", ["admission"],
    ),
    "no closed leaf looked at where some are": (
        off(closed_at=(1, 2), closed={"checked": 0}), on(), "VOID", ["admission"],
    ),
    "a refill and a closed leaf looked at": (
        off(closed_at=(1, 2), closed={"checked": 1}), on(filled_at=(1, 3), refill={"checked": 1}),
        "EQUAL_WITHIN_TOLERANCE", ["within-tolerance"],
    ),
    "no tree, not admitted, not the reference": (
        off(branches=[([0], "t", [0.9], A)], **failing("walk")), on(),
        "VOID", ["tree", "admission", "oracle"],
    ),
    "void comes before nothing proposed": (
        off(**failing("refill")), on(proposes=False), "VOID", ["admission"],
    ),
}  # fmt: skip
"""Off arm, on arm, verdict and reasons, with the reference law of the fixture."""
TOLERANCE = 1e-9
"""The tolerance of every case."""

Trees = Callable[[str, str], Json]
"""The tree of a configuration's arm."""


def default_trees(configuration: str, arm: str) -> Json:
    """``control`` is equal, ``probe`` departs with a witness, and ``deep`` is bounded."""
    if arm == "off":
        return off(branches=OFF[:2], unexplored=0.25) if configuration == "deep" else off()
    return on(branches=became(D, 1) if configuration == "probe" else ON)
