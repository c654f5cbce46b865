"""Predictions against every completion of what was lost (docs/formats.md section 11)."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prereg.analyse.predictions import status_of
from prereg.model.predictions import Claim, CountClaim, VerdictClaim

POSSIBLE: dict[str, tuple[str, ...]] = {
    "channel-S": ("FAILS", "NOT_REJECTED", "INCONCLUSIVE", "VOID"),
    "event-gap": ("DIFFERS", "NOT_REJECTED"),
    "exact": ("DEPARTS", "EQUAL_WITHIN_TOLERANCE", "INCONCLUSIVE", "VOID"),
    "records": ("INCOMPLETE", "VOID", "INCONCLUSIVE", "FAILS", "NOT_REJECTED"),
    "hypothesis": ("COMPATIBLE", "NOT_COMPATIBLE", "VOID"),
}


@pytest.mark.parametrize(
    ("verdict", "expected", "status"),
    [
        ("FAILS", ("FAILS",), "HELD"),
        ("VOID", ("FAILS",), "FAILED"),
        ("INVALID", ("FAILS",), "NOT_DETERMINED"),
        ("INVALID", ("FAILS", "NOT_REJECTED", "INCONCLUSIVE", "VOID"), "HELD"),
        ("INVALID", ("INVALID",), "HELD"),
        ("INVALID", ("FAILS", "INVALID"), "HELD"),
        ("FAILS", ("INVALID",), "FAILED"),
    ],
)
def test_verdict_claims(verdict: str, expected: tuple[str, ...], status: str) -> None:
    claim = VerdictClaim(configuration="c", in_=expected)
    assert status_of(claim, {"c": verdict}, "channel-S") == status


def test_a_lost_walk_could_have_had_any_verdict_of_the_exact_channel() -> None:
    four = VerdictClaim(configuration="c", in_=POSSIBLE["exact"])
    assert status_of(four, {"c": "INVALID"}, "exact") == "HELD"
    three = VerdictClaim(configuration="c", in_=POSSIBLE["exact"][:3])
    assert status_of(three, {"c": "INVALID"}, "exact") == "NOT_DETERMINED"
    other = VerdictClaim(configuration="c", in_=("FAILS", "NOT_REJECTED"))
    assert status_of(other, {"c": "INVALID"}, "exact") == "FAILED"


def test_a_lost_two_arm_configuration_can_only_differ_or_not() -> None:
    claim = VerdictClaim(configuration="c", in_=("DIFFERS", "NOT_REJECTED"))
    assert status_of(claim, {"c": "INVALID"}, "event-gap") == "HELD"


@pytest.mark.parametrize(
    ("verdicts", "at_least", "at_most", "status"),
    [
        ("FF", 2, None, "HELD"),
        ("FN", 2, None, "FAILED"),
        ("FI", 2, None, "NOT_DETERMINED"),
        ("FI", 1, None, "HELD"),
        ("FI", None, 2, "HELD"),
        ("FI", None, 1, "NOT_DETERMINED"),
        ("FF", None, 1, "FAILED"),
        ("NI", 1, 1, "NOT_DETERMINED"),
        ("NI", 2, None, "FAILED"),
    ],
)
def test_count_claims(verdicts: str, at_least: int | None, at_most: int | None, status: str) -> None:
    words = {"F": "FAILS", "N": "NOT_REJECTED", "I": "INVALID"}
    made = {f"c{i}": words[v] for i, v in enumerate(verdicts)}
    claim = CountClaim(configurations=tuple(made), verdict="FAILS", at_least=at_least, at_most=at_most)
    assert status_of(claim, made, "channel-S") == status


def test_a_count_of_losses_counts_them() -> None:
    made = {"a": "INVALID", "b": "FAILS"}
    for low, status in ((1, "HELD"), (2, "FAILED")):
        claim = CountClaim(configurations=("a", "b"), verdict="INVALID", at_least=low)
        assert status_of(claim, made, "channel-S") == status


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, Claim, dict[str, str]]:
    rule = draw(st.sampled_from(sorted(POSSIBLE)))
    verdicts = (*POSSIBLE[rule], "INVALID")
    size = draw(st.integers(1, 4))
    made = {f"c{i}": draw(st.sampled_from(verdicts)) for i in range(size)}
    if draw(st.booleans()):
        names = draw(st.lists(st.sampled_from(POSSIBLE[rule]), min_size=1, unique=True))
        return rule, VerdictClaim(configuration="c0", in_=tuple(names)), made
    low = draw(st.none() | st.integers(0, 5))
    high = draw(st.integers(0, 5) if low is None else st.none() | st.integers(0, 5))
    verdict = draw(st.sampled_from(POSSIBLE[rule]))
    names = draw(st.lists(st.sampled_from(sorted(made)), min_size=1, unique=True))
    return rule, CountClaim(configurations=tuple(names), verdict=verdict, at_least=low, at_most=high), made


def truth(claim: Claim, verdicts: dict[str, str]) -> bool:
    """Whether a claim is true when nothing is missing."""
    if isinstance(claim, VerdictClaim):
        return verdicts[claim.configuration] in claim.in_
    total = sum(verdicts[name] == claim.verdict for name in claim.configurations)
    return (claim.at_least is None or total >= claim.at_least) and (
        claim.at_most is None or total <= claim.at_most
    )


@given(cases())
def test_brute_force_over_completions(case: tuple[str, Claim, dict[str, str]]) -> None:
    rule, claim, made = case
    options = [POSSIBLE[rule] if verdict == "INVALID" else (verdict,) for verdict in made.values()]
    answers = {truth(claim, dict(zip(made, choice, strict=True))) for choice in itertools.product(*options)}
    expected = "NOT_DETERMINED" if len(answers) == 2 else ("HELD" if answers == {True} else "FAILED")
    assert status_of(claim, made, rule) == expected
