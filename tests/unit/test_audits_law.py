"""Which events contain which outcomes, what violates which predicate, and what is a witness."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from audits.jsonc import canonical
from audits.law import Law, violates

Json = dict[str, Any]


def tokens(*ids: int, finish: str | None = None) -> Json:
    return {"tokens": list(ids), "finish": finish}


CRASH: Json = {"crash": "ValueError"}
RULES = {"short": {"kind": "max-tokens", "n": 2}}
OUTCOMES: dict[str, Json] = {
    "empty": tokens(),
    "1": tokens(1),
    "1,2": tokens(1, 2),
    "1,2 stop": tokens(1, 2, finish="stop"),
    "1,2,3": tokens(1, 2, 3),
    "crash": CRASH,
    "one": {"value": 1},
    "half": {"value": 0.5},
    "true": {"value": True},
    "text": {"value": "1"},
}
NO_CRASH = set(OUTCOMES) - {"crash"}
TOKENS = {"empty", "1", "1,2", "1,2 stop", "1,2,3"}

MEMBERS: list[tuple[Json, set[str]]] = [
    ({"kind": "outcome", "outcome": tokens(1, 2)}, {"1,2"}),
    ({"kind": "outcome", "outcome": {"value": 1}}, {"one"}),
    ({"kind": "outcome", "outcome": CRASH}, set()),
    ({"kind": "other"}, NO_CRASH - {"1,2", "one"}),
    ({"kind": "prefix", "tokens": []}, TOKENS),
    ({"kind": "prefix", "tokens": [1, 2]}, {"1,2", "1,2 stop", "1,2,3"}),
    ({"kind": "prefix", "tokens": [2]}, set()),
    ({"kind": "length", "equals": 0}, {"empty"}),
    ({"kind": "length", "equals": 2}, {"1,2", "1,2 stop"}),
    ({"kind": "longer", "than": 1}, {"1,2", "1,2 stop", "1,2,3"}),
    ({"kind": "longer", "than": 3}, set()),
    ({"kind": "finish", "equals": None}, TOKENS - {"1,2 stop"}),
    ({"kind": "finish", "equals": "stop"}, {"1,2 stop"}),
    ({"kind": "crash"}, {"crash"}),
    ({"kind": "violation"}, {"1,2,3"}),
    ({"kind": "set", "outcomes": [tokens(), CRASH, {"value": "1"}]}, {"empty", "text"}),
    ({"kind": "set", "outcomes": []}, set()),
    ({"kind": "value", "equals": 1}, {"one"}),
    ({"kind": "value", "equals": True}, {"true"}),
    ({"kind": "value", "equals": "1"}, {"text"}),
    ({"kind": "value", "equals": 0}, set()),
    ({"kind": "at-least", "value": 0.5}, {"one", "half"}),
    ({"kind": "at-least", "value": 2}, set()),
]


def _law(*events: Json, reference: list[Json] | None = None, rules: dict[str, Json] | None = None) -> Law:
    named = [{"id": f"e{i}", **event} for i, event in enumerate(events)]
    return Law(named, reference, RULES if rules is None else rules)


@pytest.mark.parametrize("row", range(len(MEMBERS)))
def test_membership(row: int) -> None:
    event, members = MEMBERS[row]
    law = _law(*(event for event, _ in MEMBERS[:2]), event)
    found = {name for name, outcome in OUTCOMES.items() if law.contains(event, canonical(outcome))}
    assert found == members
    # Counting goes by look-up where it can; the definition is its slow twin.
    draws = Counter({canonical(outcome): i + 1 for i, outcome in enumerate(OUTCOMES.values())})
    assert law.count(event, draws) == sum(i + 1 for i, name in enumerate(OUTCOMES) if name in members)
    sealed = [{"outcome": outcome, "p": 0.1} for outcome in OUTCOMES.values()]
    with_law = _law(*(event for event, _ in MEMBERS[:2]), event, reference=sealed)
    assert with_law.probability(event) == pytest.approx(0.1 * len(members))


def test_a_named_set_counts_an_outcome_once() -> None:
    law = _law({"kind": "set", "outcomes": [tokens(1), tokens(1)]})
    assert law.count(law.events[0], Counter({canonical(tokens(1)): 3})) == 3


def test_probabilities_are_summed_correctly_rounded() -> None:
    reference = [{"outcome": tokens(i), "p": 0.1} for i in range(10)]
    law = _law({"kind": "length", "equals": 1}, reference=reference)
    assert law.probability(law.events[0]) == 1.0
    assert sum([0.1] * 10) != 1.0
    assert _law({"kind": "crash"}).probability({"kind": "crash"}) is None


def test_a_probability_is_at_most_1() -> None:
    """A reference may sum to 1 within 1e-6, and so to more than 1."""
    reference = [{"outcome": tokens(1), "p": 0.5}, {"outcome": tokens(2), "p": 0.5 + 5e-7}]
    law = _law({"kind": "length", "equals": 1}, reference=reference)
    assert law.probability(law.events[0]) == 1.0
    assert law.probability({"kind": "outcome", "outcome": tokens(2)}) == 0.5 + 5e-7


def _after(pattern: list[int], context: list[int]) -> Json:
    return {"kind": "nothing-after", "pattern": pattern, "context": context}


VIOLATIONS: list[tuple[Json, list[int], bool]] = [
    ({"kind": "max-tokens", "n": 2}, [1, 2], False),
    ({"kind": "max-tokens", "n": 2}, [1, 2, 3], True),
    ({"kind": "max-tokens", "n": 0}, [], False),
    ({"kind": "no-early-end", "n": 2, "end": [0, 9]}, [1, 9], True),
    ({"kind": "no-early-end", "n": 2, "end": [0, 9]}, [1, 1, 9], False),
    ({"kind": "no-early-end", "n": 2, "end": [0, 9]}, [1], False),
    ({"kind": "no-early-end", "n": 0, "end": [0]}, [0], False),
    (_after([5], []), [5], False),
    (_after([5], []), [1, 5], False),
    (_after([5], []), [5, 1], True),
    (_after([5], []), [5, 5], True),
    (_after([1, 2], [1]), [2], False),
    (_after([1, 2], [1]), [2, 3], True),
    (_after([1, 2], [1, 2]), [3, 3], False),
    (_after([1, 2, 1], [1, 2]), [1, 0], True),
    (_after([1, 2, 3, 4], [2]), [3, 4, 5], False),
    (_after([1, 2], []), [1, 2, 1, 2], True),
    (_after([1], [1]), [], False),
    ({"kind": "allowed-tokens", "tokens": [1, 2]}, [1, 2, 1], False),
    ({"kind": "allowed-tokens", "tokens": [1, 2]}, [1, 3], True),
    ({"kind": "allowed-tokens", "tokens": []}, [], False),
    # One list: every token is held against it. Two: the tokens 0, 2, 4 against the first, 1, 3 the second.
    ({"kind": "allowed-by-position", "positions": [[1, 2]]}, [1, 2, 2], False),
    ({"kind": "allowed-by-position", "positions": [[1, 2]]}, [1, 2, 3], True),
    ({"kind": "allowed-by-position", "positions": [[1], [2]]}, [1, 2, 1, 2], False),
    ({"kind": "allowed-by-position", "positions": [[1], [2]]}, [2, 1], True),
    ({"kind": "allowed-by-position", "positions": [[1], [2]]}, [1, 2, 2], True),
    ({"kind": "allowed-by-position", "positions": [[1], []]}, [1], False),
    ({"kind": "allowed-by-position", "positions": [[1], []]}, [1, 1], True),
    ({"kind": "allowed-by-position", "positions": [[]]}, [], False),
    ({"kind": "min-tokens", "n": 2}, [1], True),
    ({"kind": "min-tokens", "n": 2}, [1, 1], False),
    ({"kind": "min-tokens", "n": 0}, [], False),
    ({"kind": "min-tokens", "n": 1}, [], True),
]


@pytest.mark.parametrize("row", range(len(VIOLATIONS)))
def test_violations(row: int) -> None:
    rule, ids, expected = VIOLATIONS[row]
    assert violates(rule, tokens(*ids)) is expected
    assert not violates(rule, CRASH)
    assert not violates(rule, {"value": 1})


TWO: dict[str, Json] = {
    "z-first": {"kind": "max-tokens", "n": 2},
    "a-second": {"kind": "allowed-tokens", "tokens": [1, 2]},
}


def _count(*outcomes: Json) -> Counter[bytes]:
    return Counter(canonical(outcome) for outcome in outcomes)


def test_witnesses_come_by_count_then_bytes_then_predicate() -> None:
    law = _law({"kind": "crash"}, reference=[{"outcome": tokens(1), "p": 1.0}], rules=TWO)
    on = _count(tokens(3, 3, 3), tokens(9), tokens(9), tokens(1, 1, 1), tokens(1), CRASH)
    assert law.witnesses(_count(tokens(1)), on) == [
        {"outcome": tokens(9), "predicate": "a-second", "count": 2},
        {"outcome": tokens(1, 1, 1), "predicate": "z-first", "count": 1},
        {"outcome": tokens(3, 3, 3), "predicate": "z-first", "count": 1},
        {"outcome": tokens(3, 3, 3), "predicate": "a-second", "count": 1},
    ]


def test_a_predicate_that_the_off_arm_violates_makes_no_witness() -> None:
    law = _law({"kind": "crash"}, reference=[{"outcome": tokens(1), "p": 1.0}], rules=TWO)
    found = law.witnesses(_count(tokens(7)), _count(tokens(3, 3, 3)))
    assert [one["predicate"] for one in found] == ["z-first"]


@pytest.mark.parametrize(("p", "expected"), [(0.5, 0), (0.0, 1), (None, 1)])
def test_an_outcome_of_the_reference_is_no_witness_unless_p_is_0(p: float | None, expected: int) -> None:
    reference = [{"outcome": tokens(1), "p": 0.5}]
    if p is not None:
        reference.append({"outcome": tokens(3), "p": p})
    law = _law({"kind": "crash"}, reference=reference, rules=TWO)
    assert len(law.witnesses(_count(), _count(tokens(3)))) == expected


def test_without_a_reference_nothing_is_a_witness() -> None:
    assert _law({"kind": "crash"}, rules=TWO).witnesses(_count(), _count(tokens(3))) == []
