"""The indexed membership equals the definition, outcome by outcome and event by event."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prereg.codec.canonical import dumps
from prereg.codec.convert import to_json
from prereg.model import law
from prereg.model.law import Crashed, Decoded, Event, Mass, Outcome, Predicate, Valued
from prereg.stats.membership import Membership, breaks, contains, key

TOKENS = st.lists(st.integers(0, 3), max_size=5).map(tuple)
FINISH = st.sampled_from([None, "stop", "length"])
SCALARS = st.sampled_from([0, 1, 2, 1.5, -1, True, False, "1", "true", "a", 0.1])
OUTCOMES: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Decoded, tokens=TOKENS, finish=FINISH),
    st.builds(Crashed, crash=st.sampled_from(["ValueError", "KeyError"])),
    st.builds(Valued, value=SCALARS),
)
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(law.OutcomeEvent, id=st.just("e"), outcome=OUTCOMES),
    st.builds(law.OtherEvent, id=st.just("e")),
    st.builds(law.PrefixEvent, id=st.just("e"), tokens=TOKENS),
    st.builds(law.LengthEvent, id=st.just("e"), equals=st.integers(0, 5)),
    st.builds(law.LongerEvent, id=st.just("e"), than=st.integers(0, 5)),
    st.builds(law.FinishEvent, id=st.just("e"), equals=FINISH),
    st.builds(law.CrashEvent, id=st.just("e")),
    st.builds(law.ViolationEvent, id=st.just("e")),
    st.builds(
        law.SetEvent,
        id=st.just("e"),
        outcomes=st.lists(OUTCOMES, max_size=4).map(tuple),
        hypothesis=st.none(),
    ),
    st.builds(law.ValueEvent, id=st.just("e"), equals=SCALARS),
    st.builds(law.AtLeastEvent, id=st.just("e"), value=st.sampled_from([-1.0, 0.0, 1.0, 1.5, 2.0])),
)
RULES = st.one_of(
    st.builds(law.MaxTokens, n=st.integers(0, 5)),
    st.builds(law.NoEarlyEnd, n=st.integers(0, 5), end=TOKENS),
    st.builds(law.NothingAfter, pattern=TOKENS.filter(bool), context=TOKENS),
    st.builds(law.AllowedTokens, tokens=TOKENS),
    st.builds(law.AllowedByPosition, positions=st.lists(TOKENS, min_size=1, max_size=3).map(tuple)),
    st.builds(law.MinTokens, n=st.integers(0, 5)),
)
PREDICATES = st.lists(
    st.builds(Predicate, id=st.sampled_from("pq"), statement=st.just("s"), source=st.just("-"), rule=RULES),
    max_size=2,
)


@given(st.lists(EVENTS, min_size=1, max_size=12), PREDICATES, st.lists(OUTCOMES, max_size=8))
def test_the_index_says_what_the_definition_says(
    events: list[Event], predicates: list[Predicate], outcomes: list[Outcome]
) -> None:
    index = Membership(events, predicates)
    for outcome in outcomes:
        slow = [i for i, e in enumerate(events) if contains(e, outcome, events, predicates)]
        assert sorted(index.of(outcome)) == slow
    weighted = [(o, i + 1) for i, o in enumerate(outcomes)]
    assert index.totals(weighted) == [
        sum(w for o, w in weighted if contains(e, o, events, predicates)) for e in events
    ]
    reference = [Mass(outcome=o, p=0.1 * (i + 1)) for i, o in enumerate(outcomes)]
    assert index.probabilities(reference) == [
        math.fsum(m.p for m in reference if contains(e, m.outcome, events, predicates)) for e in events
    ]


SAMPLES: tuple[Outcome, ...] = (
    *(Valued(value=v) for v in (0, 0.0, -0.0, 1, 1.0, 1.5, True, False, "1", "true", "")),
    *(Decoded(tokens=t, finish=f) for t in ((), (1,), (1, 2)) for f in (None, "", "stop")),
    Crashed(crash="1"),
    Crashed(crash="stop"),
)


def test_keys_are_equal_exactly_where_canonical_json_is() -> None:
    for one in SAMPLES:
        for two in SAMPLES:
            same = dumps(to_json(one)) == dumps(to_json(two))
            assert (key(one) == key(two)) == same, (one, two)
            assert not same or hash(key(one)) == hash(key(two))


@pytest.mark.parametrize(
    ("rule", "tokens", "broken"),
    [
        (law.MaxTokens(n=2), (1, 1), False),
        (law.MaxTokens(n=2), (1, 1, 1), True),
        (law.NoEarlyEnd(n=2, end=(0, 9)), (1, 9), True),
        (law.NoEarlyEnd(n=2, end=(0, 9)), (1, 1, 9), False),
        (law.NoEarlyEnd(n=2, end=(0, 9)), (), False),
        (law.AllowedTokens(tokens=(1, 2)), (2, 1, 1), False),
        (law.AllowedTokens(tokens=(1, 2)), (2, 3), True),
        (law.AllowedTokens(tokens=(1, 2)), (), False),
        (law.AllowedByPosition(positions=((1,), (2, 3))), (1, 3, 1, 2), False),
        (law.AllowedByPosition(positions=((1,), (2, 3))), (1, 3, 2), True),
        (law.AllowedByPosition(positions=((1,), (2, 3))), (2,), True),
        (law.AllowedByPosition(positions=((),)), (), False),
        (law.MinTokens(n=2), (1, 1), False),
        (law.MinTokens(n=2), (1,), True),
        (law.MinTokens(n=1), (), True),
        (law.MinTokens(n=0), (), False),
        (law.NothingAfter(pattern=(1, 2), context=()), (1, 2), False),
        (law.NothingAfter(pattern=(1, 2), context=()), (1, 2, 3), True),
        (law.NothingAfter(pattern=(1, 2), context=(1,)), (2, 3), True),
        (law.NothingAfter(pattern=(1, 2), context=(1, 2)), (3, 3), False),
    ],
)
def test_rules(rule: law.Rule, tokens: tuple[int, ...], broken: bool) -> None:
    assert breaks(Decoded(tokens=tokens, finish="stop"), rule) == broken
    assert not breaks(Valued(value=1), rule)
    assert not breaks(Crashed(crash="ValueError"), rule)


def test_probabilities_are_correctly_rounded() -> None:
    reference = [Mass(outcome=Decoded(tokens=(i,), finish=None), p=0.1) for i in range(10)]
    everything = Membership([law.PrefixEvent(id="e", tokens=())])
    assert everything.probabilities(reference) == [1.0]
    assert sum(m.p for m in reference) != 1.0


@given(TOKENS, st.lists(TOKENS, min_size=1, max_size=3))
def test_allowed_by_position_by_its_words(tokens: tuple[int, ...], lists: list[tuple[int, ...]]) -> None:
    """Token number i is not in list number i mod k; the lists written out as often as it takes."""
    written = lists * (len(tokens) + 1)
    expected = any(token not in allowed for token, allowed in zip(tokens, written, strict=False))
    rule = law.AllowedByPosition(positions=tuple(lists))
    assert breaks(Decoded(tokens=tokens, finish=None), rule) == expected


@given(TOKENS, TOKENS.filter(bool), TOKENS)
def test_nothing_after_by_its_words(
    tokens: tuple[int, ...], pattern: tuple[int, ...], context: tuple[int, ...]
) -> None:
    """Some occurrence of the pattern ends inside the tokens before their last position."""
    text = context + tokens
    ends = [at + len(pattern) - 1 for at in range(len(text)) if text[at : at + len(pattern)] == pattern]
    expected = any(len(context) <= end < len(text) - 1 for end in ends)
    outcome = Decoded(tokens=tokens, finish=None)
    assert breaks(outcome, law.NothingAfter(pattern=pattern, context=context)) == expected
