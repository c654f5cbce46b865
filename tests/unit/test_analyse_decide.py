"""The decision rules row by row (docs/formats.md sections 10 and 12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from bench.synthetic import SEAL, draws_of, study, tally_of, tokens
from prereg.analyse.decide import decide
from prereg.analyse.tally import Tally, tally
from prereg.codec.canonical import dump_file
from prereg.codec.convert import read_machine, to_json
from prereg.codec.schema import validate
from prereg.errors import EvidenceIncomplete, VerificationFailed
from prereg.model import law
from prereg.model.law import Crashed, Family, Mass, MaxTokens, Outcome, Predicate, Valued
from prereg.model.record import Counters
from prereg.model.study import Study
from prereg.model.verdict import Decision, Decisions
from prereg.stats.exact import lower, upper

A, B, LONG, LONGER = tokens(1), tokens(2), tokens(1, 1), tokens(1, 1, 1)
CRASH = Crashed(crash="AssertionError")
SHORT = Predicate(id="short", statement="at most one token", source="-", rule=MaxTokens(n=1))
SHORTER = Predicate(id="shorter", statement="at most two tokens", source="-", rule=MaxTokens(n=2))
FAMILY = Family(
    reference=(Mass(outcome=A, p=0.5), Mass(outcome=B, p=0.5)),
    events=(
        law.OutcomeEvent(id="a", outcome=A),
        law.OutcomeEvent(id="b", outcome=B),
        law.OtherEvent(id="other"),
        law.CrashEvent(id="crash"),
        law.ViolationEvent(id="violation"),
    ),
)
N = 1000
HALF: Sequence[tuple[Outcome, int]] = [(A, 500), (B, 500)]
Draws = Sequence[tuple[Outcome, int]]


def tallies(off: Draws, on: Draws, proposals: int = 7, name: str = "c") -> dict[str, Tally]:
    return {
        f"main.{name}.off": tally_of(f"main.{name}.off", off),
        f"main.{name}.on": tally_of(f"main.{name}.on", on, proposals=proposals),
    }


def plan(**changes: Any) -> Study:
    given: dict[str, Any] = {"draws": N, "predicates": [SHORT, SHORTER], **changes}
    return study({"c": changes.pop("family", FAMILY)}, **{k: v for k, v in given.items() if k != "family"})


def one(decisions: Decisions) -> Decision:
    assert len(decisions.configurations) == 1
    validate(to_json(decisions), "decisions", where="decisions.json")
    return decisions.configurations[0]


TABLE: Mapping[str, tuple[dict[str, Any], Draws, Draws, int, str, tuple[str, ...], bool]] = {
    # name: study, off arm, on arm, proposals, verdict, reasons, eligible
    "equal arms": ({}, HALF, HALF, 7, "NOT_REJECTED", ("none",), False),
    "nothing proposed": ({}, HALF, HALF, 0, "INCONCLUSIVE", ("nothing-proposed",), False),
    "nothing proposed beats a witness": (
        {}, HALF, [(A, 999), (LONG, 1)], 0, "INCONCLUSIVE", ("nothing-proposed",), False,
    ),
    "a witness": ({}, HALF, [(A, 500), (B, 499), (LONG, 1)], 7, "FAILS", ("witness",), True),
    "a bound": ({}, HALF, [(A, 900), (B, 100)], 7, "FAILS", ("bound",), True),
    "a witness and a bound": ({}, HALF, [(A, 500), (LONG, 500)], 7, "FAILS", ("witness", "bound"), True),
    "crashes alone are not eligible": (
        {}, HALF, [(A, 470), (B, 470), (CRASH, 60)], 7, "FAILS", ("bound",), False,
    ),
    "crashes away from the off arm": (
        {"allowance": 1.0}, [(A, 470), (B, 470), (CRASH, 60)], HALF, 7, "FAILS", ("bound",), True,
    ),
    "off arm violates": (
        {}, [(A, 999), (LONG, 1)], HALF, 7, "VOID", ("off-arm-violation", "calibration-excess"), False,
    ),
    "off arm violates, allowed otherwise": (
        {"allowance": 1.0}, [(A, 999), (LONG, 1)], HALF, 7, "VOID", ("off-arm-violation",), False,
    ),
    "off arm away from P": ({}, [(A, 700), (B, 300)], HALF, 7, "VOID", ("calibration-excess",), False),
    "off arm away from P by its complement alone": (
        {"family": Family(reference=FAMILY.reference, events=(FAMILY.events[0],))},
        [(A, 300), (B, 700)], HALF, 7, "VOID", ("calibration-excess",), False,
    ),
    "void beats nothing proposed": (
        {}, [(A, 700), (B, 300)], HALF, 0, "VOID", ("calibration-excess",), False,
    ),
    "void beats a witness": (
        {}, [(A, 700), (B, 300)], [(A, 999), (LONG, 1)], 7, "VOID", ("calibration-excess",), False,
    ),
    "two arms differ": (
        {"rule": "event-gap"}, HALF, [(A, 900), (B, 100)], 0, "DIFFERS", ("bound",), True,
    ),
    "two arms do not": ({"rule": "event-gap"}, HALF, HALF, 0, "NOT_REJECTED", ("none",), False),
    "two arms differ by crashes": (
        {"rule": "event-gap"}, HALF, [(A, 470), (B, 470), (CRASH, 60)], 0, "DIFFERS", ("bound",), False,
    ),
    "two arms know no witness": (
        {"rule": "event-gap"}, HALF, [(A, 500), (B, 499), (LONG, 1)], 0, "NOT_REJECTED", ("none",), False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_verdicts(name: str) -> None:
    changes, off, on, proposals, verdict, reasons, eligible = TABLE[name]
    decision = one(decide(plan(**changes), SEAL, tallies(off, on, proposals), set()))
    assert (decision.verdict, decision.reasons, decision.eligible) == (verdict, reasons, eligible)
    assert (decision.calibration is None) == (decision.rule == "event-gap")


def test_bounds_are_those_of_the_counts() -> None:
    decision = one(decide(plan(), SEAL, tallies(HALF, [(A, 900), (CRASH, 100)]), set()))
    assert decision.B == 20
    assert decision.level == 0.05 / 20
    assert [r.event for r in decision.bounds] == ["a", "b", "other", "crash", "violation"]
    assert [(r.k_off, r.k_on, r.p) for r in decision.bounds] == [
        (500, 900, 0.5), (500, 0, 0.5), (0, 0, 0.0), (0, 100, 0.0), (0, 0, 0.0),
    ]  # fmt: skip
    for row in decision.bounds:
        assert row.L_off == lower(row.k_off, N, decision.level)
        assert row.U_off == upper(row.k_off, N, decision.level)
        assert row.L_on == lower(row.k_on, N, decision.level)
        assert row.U_on == upper(row.k_on, N, decision.level)
    assert (decision.crashes.off, decision.crashes.on) == (0, 100)
    assert (decision.proposals, decision.verifications, decision.accepted) == (7, 7, 3)


def test_the_largest_gap_may_be_a_complement() -> None:
    """b never comes from the on arm: its complement's gap is the largest, and no listed event has as much."""
    decision = one(decide(plan(), SEAL, tallies(HALF, [(A, 900), (CRASH, 100)]), set()))
    row = decision.bounds[1]
    assert (decision.D_event, decision.D_complement) == ("b", True)
    assert (1 - row.U_on) - (1 - row.L_off) == decision.D


@pytest.mark.parametrize("first", ["a", "b"])
def test_ties_go_to_the_event_listed_first(first: str) -> None:
    """a and the complement of b have one gap; rounding must not choose."""
    listed = {"a": law.OutcomeEvent(id="a", outcome=A), "b": law.OutcomeEvent(id="b", outcome=B)}
    order = [listed[first], *(e for name, e in listed.items() if name != first)]
    family = Family(reference=FAMILY.reference, events=tuple(order))
    for more in range(520, 1000, 7):
        on = [(A, more), (B, N - more)]
        decision = one(decide(plan(family=family), SEAL, tallies(HALF, on), set()))
        assert (decision.D_event, decision.D_complement) == (first, first == "b")


def test_ties_go_to_the_event_before_its_complement() -> None:
    """With threshold half and no difference at all, an event and its complement have one gap."""
    family = Family(reference=FAMILY.reference, events=(FAMILY.events[1],))
    decision = one(decide(plan(family=family), SEAL, tallies(HALF, HALF), set()))
    assert (decision.D_event, decision.D_complement) == ("b", False)
    assert decision.calibration is not None
    assert (decision.calibration.event, decision.calibration.complement) == ("b", False)


def test_calibration_counts_and_excess() -> None:
    decision = one(decide(plan(), SEAL, tallies([(A, 670), (LONG, 20), (LONGER, 5), (B, 305)], HALF), set()))
    assert decision.calibration is not None
    assert decision.calibration.violations == 25
    assert decision.calibration.excess == (1 - upper(305, N, decision.level)) - 0.5
    assert (decision.calibration.event, decision.calibration.complement) == ("b", True)
    assert not decision.calibration.passed


def test_calibration_does_not_pass_with_a_violation_alone() -> None:
    decision = one(decide(plan(allowance=1.0), SEAL, tallies([(A, 999), (LONG, 1)], HALF), set()))
    assert decision.calibration is not None
    assert (decision.calibration.violations, decision.calibration.passed) == (1, False)
    decision = one(decide(plan(), SEAL, tallies(HALF, [(A, 999), (LONG, 1)]), set()))
    assert decision.calibration is not None
    assert (decision.calibration.violations, decision.calibration.passed) == (0, True)


def test_witnesses_in_order() -> None:
    finished = tokens(1, 1, finish="stop")
    three = tokens(2, 2, 2)
    on: Draws = [(A, 985), (LONG, 2), (finished, 2), (three, 3), (LONGER, 3), (tokens(3), 5)]
    decision = one(decide(plan(), SEAL, tallies(HALF, on), set()))
    assert [(w.outcome, w.predicate, w.count) for w in decision.witnesses] == [
        (LONGER, "short", 3), (LONGER, "shorter", 3), (three, "short", 3), (three, "shorter", 3),
        (LONG, "short", 2), (finished, "short", 2),
    ]  # fmt: skip


def test_a_predicate_that_the_off_arm_violates_makes_no_witness() -> None:
    on: Draws = [(A, 998), (LONG, 1), (LONGER, 1)]
    decision = one(decide(plan(), SEAL, tallies([(A, 999), (LONG, 1)], on), set()))
    assert [(w.outcome, w.predicate) for w in decision.witnesses] == [(LONGER, "shorter")]


@pytest.mark.parametrize("p", [0.0, 0.01])
def test_an_outcome_of_the_law_is_no_witness(p: float) -> None:
    reference = (Mass(outcome=A, p=0.5), Mass(outcome=B, p=0.5 - p), Mass(outcome=LONG, p=p))
    family = Family(reference=reference, events=FAMILY.events)
    decision = one(decide(plan(family=family), SEAL, tallies(HALF, [*HALF[:1], (B, 499), (LONG, 1)]), set()))
    assert [w.outcome for w in decision.witnesses] == ([LONG] if p == 0 else [])


@pytest.mark.parametrize(
    ("lost", "draws", "proposals"),
    [
        ({"main.c.off"}, (None, N), 7),
        ({"main.c.on"}, (N, None), None),
        ({"main.c.off", "main.c.on"}, (None, None), None),
    ],
)
def test_a_lost_unit_takes_with_it_what_rests_on_it(
    lost: set[str], draws: tuple[int | None, int | None], proposals: int | None
) -> None:
    decision = one(decide(plan(), SEAL, tallies([(A, 1000)], [(LONG, 1000)]), lost))
    assert (decision.verdict, decision.reasons, decision.eligible) == ("INVALID", ("unit-lost",), False)
    assert (decision.draws.off, decision.draws.on) == draws
    assert decision.proposals == decision.verifications == proposals
    assert (decision.crashes.off is None, decision.crashes.on is None) == tuple(d is None for d in draws)
    assert (decision.D, decision.D_event, decision.D_complement, decision.calibration) == (None,) * 4
    assert (decision.bounds, decision.witnesses) == ((), ())
    assert (decision.B, decision.level) == (20, 0.05 / 20)


@pytest.mark.parametrize("have", [0, 999])
def test_a_missing_unit_is_refused_or_bounded(have: int) -> None:
    counts = tallies(HALF, [(A, 1000)])
    if have:
        counts["main.c.on"] = tally_of("main.c.on", [(A, have)])
    else:
        del counts["main.c.on"]
    with pytest.raises(EvidenceIncomplete, match=r"main\.c\.on") as refused:
        decide(plan(missing="refuse"), SEAL, counts, set())
    assert refused.value.next_step == "prereg collect studies/made-up"
    decision = one(decide(plan(missing="bound"), SEAL, counts, set()))
    assert (decision.verdict, decision.draws.on) == ("INVALID", None)


def test_an_invalid_unit_is_bounded_even_where_missing_ones_are_refused() -> None:
    counts = tallies(HALF, HALF)
    del counts["main.c.on"]
    assert one(decide(plan(missing="refuse"), SEAL, counts, {"main.c.on"})).verdict == "INVALID"


def test_more_draws_than_planned_are_a_fault() -> None:
    with pytest.raises(VerificationFailed, match="1001 draws"):
        decide(plan(missing="bound"), SEAL, tallies(HALF, [(A, 1001)]), set())


def test_a_tally_takes_the_records_of_its_unit_only() -> None:
    records = list(
        draws_of(
            "main.c.on", [(A, 2), (CRASH, 1)], counters=Counters(proposals=3, verifications=2, accepted=1)
        )
    )
    got = tally("main.c.on", records)
    assert got.outcomes == ((A, 2), (CRASH, 1))
    assert (got.draws, got.crashes) == (3, 1)
    assert (got.proposals, got.verifications, got.accepted) == (9, 6, 3)
    with pytest.raises(VerificationFailed, match=r"main\.c\.off"):
        tally("main.c.on", [*records, *draws_of("main.c.off", [(A, 1)])])


def test_true_is_not_one() -> None:
    got = tally("u", draws_of("u", [(Valued(value=1), 1), (Valued(value=True), 1), (Valued(value="1"), 1)]))
    assert [n for _, n in got.outcomes] == [1, 1, 1]


def test_two_arms_know_no_witness_even_with_a_law() -> None:
    on: Draws = [(A, 500), (B, 499), (LONG, 1)]
    assert one(decide(plan(rule="event-gap"), SEAL, tallies(HALF, on), set())).witnesses == ()


def test_decisions_survive_their_file() -> None:
    predictions = ()
    got = decide(plan(predictions=predictions), SEAL, tallies(HALF, [(A, 900), (LONG, 100)]), set())
    data = dump_file(to_json(got))
    assert read_machine(data, "decisions", Decisions, where="decisions.json") == got
