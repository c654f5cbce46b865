"""Laws from leaves."""

from __future__ import annotations

from harness.choices.law import law
from harness.choices.tree import Leaf


def leaf(value: int, weight: float, choices: tuple[int, ...] = (0,), **change: object) -> Leaf:
    fields: dict[str, object] = {
        "choices": choices,
        "kinds": ("token",) * len(choices),
        "p": (weight,) * len(choices),
        "weight": weight,
        "outcome": {"value": value},
        "counters": {"proposals": 1, "verifications": 1, "accepted": 0},
        "digest": "",
        "closed": False,
        "filled": 0,
    }
    return Leaf(**(fields | change))  # type: ignore[arg-type]


def test_a_law_adds_up_its_leaves() -> None:
    found = law([leaf(0, 0.25), leaf(1, 0.125), leaf(0, 0.5)])
    assert found.p == {'{"value":0}': 0.75, '{"value":1}': 0.125} and found.slack == 0.125
    assert law([leaf(0, 0.5), leaf(1, 0.5 + 1e-12)]).slack == 0.0


def test_told_leaves_count_no_proposals() -> None:
    assert law([leaf(0, 0.5), leaf(1, 0.5, closed=True)]).proposals == 1
