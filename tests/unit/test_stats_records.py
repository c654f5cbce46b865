"""When an entry matches its reference and where a draw does not (docs/formats.md section 16)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from second_fixture import second_study

from bench.synthetic import study as made_up
from prereg.analyse.records import mismatch_counts
from prereg.analyse.tally import Tally
from prereg.model.law import (
    Crashed,
    CrashEvent,
    Decoded,
    Family,
    OtherEvent,
    Outcome,
    RecordEntry,
    RecordValue,
    ReferenceEntry,
)
from prereg.model.study import RecordsPlan
from prereg.stats.budget import budget_of, hypothesis_level
from prereg.stats.power import design_of
from prereg.stats.records import Replay, matches, record_events

LOW: dict[int, RecordValue] = {0: -0.5, 1: -1.0, 2: "-inf"}


def plan(told: int = 1, tolerance: float = 0.125) -> RecordsPlan:
    return RecordsPlan(kind="scores", reference="replay", source="-", told=told, tolerance=tolerance)


def entry(**values: RecordValue) -> RecordEntry:
    """`entry(t0=-0.5)`: a value for each token."""
    return RecordEntry(tokens=tuple(int(t[1:]) for t in values), values=tuple(values.values()))


CASES: dict[str, tuple[dict[str, RecordValue], dict[int, RecordValue], RecordsPlan, bool]] = {
    "the greatest": ({"t0": -0.5}, LOW, plan(), True),
    "all": ({"t0": -0.5, "t1": -1.0, "t2": "-inf"}, LOW, plan(3), True),
    "at the tolerance": ({"t0": -0.625}, LOW, plan(), True),
    "past the tolerance": ({"t0": -0.626}, LOW, plan(), False),
    "too few": ({"t0": -0.5}, LOW, plan(2), False),
    "a token without a reference": ({"t0": -0.5, "t9": -3.0}, LOW, plan(), False),
    "not the greatest": ({"t1": -1.0}, LOW, plan(), False),
    "not the greatest, within the tolerance": ({"t1": -1.0}, LOW, plan(tolerance=0.5), True),
    "one more than is told": ({"t0": -0.5, "t2": "-inf"}, LOW, plan(), True),
    "two told, one of them left out": ({"t0": -0.5, "t2": "-inf"}, LOW, plan(2), False),
    "no token is above nothing": ({"t2": "-inf"}, {2: "-inf", 3: "-inf"}, plan(), True),
    "a number for -inf": ({"t0": -0.5, "t2": -99.0}, LOW, plan(), False),
    "-inf for a number": ({"t0": "-inf"}, LOW, plan(), False),
    "nan is nothing's equal": ({"t3": "nan"}, {3: "nan"}, plan(), False),
    "inf is nothing's equal": ({"t4": "inf"}, {4: "inf"}, plan(), False),
    "inf is above what is told": ({"t0": -0.5}, {0: -0.5, 4: "inf"}, plan(), False),
    "nan is above nothing": ({"t0": -0.5}, {0: -0.5, 3: "nan"}, plan(), True),
    "1 is 1.0": ({"t0": 1}, {0: 1.0}, plan(), True),
}


@pytest.mark.parametrize("name", CASES)
def test_matches(name: str) -> None:
    values, reference, given, expected = CASES[name]
    assert matches(entry(**values), reference, given) == expected


GOOD, WRONG = entry(t0=-0.5), entry(t0=-3.0)
PREFIXES = ((), (0,), (0, 1))


@pytest.mark.parametrize(
    ("tokens", "told", "positions"),
    [
        ((), (), ()),
        ((0,), (GOOD,), ()),
        ((0, 1, 5), (GOOD, GOOD, GOOD), ()),
        ((0, 1), (GOOD, WRONG), (2,)),
        ((0, 1), (WRONG, GOOD), (1,)),
        ((0, 1), (GOOD,), (2,)),
        ((0,), (GOOD, GOOD), (2,)),
        ((), (GOOD,), (1,)),
        ((1, 0), (GOOD, GOOD), (2,)),
        ((0, 1, 5, 5), (GOOD, GOOD, GOOD, GOOD), (4,)),
    ],
)
def test_mismatches(
    tokens: tuple[int, ...], told: tuple[RecordEntry, ...], positions: tuple[int, ...]
) -> None:
    replay = Replay([ReferenceEntry(prefix=p, entry=GOOD) for p in PREFIXES], plan())
    assert replay.mismatches(Decoded(tokens=tokens, finish=None), told) == positions
    assert replay.mismatches(Crashed(crash="E"), ()) == ()


def test_a_draw_counts_once_whatever_is_wrong_with_it_and_past_the_horizon_only_as_any() -> None:
    study = second_study()
    good = study.events.configurations["same"].records
    assert good is not None
    right = tuple(row.entry for row in good)
    said: list[tuple[Outcome, tuple[RecordEntry, ...], int]] = [
        (Decoded(tokens=(0, 1), finish="length"), right[:2], 5),
        (Decoded(tokens=(0, 1), finish="length"), (WRONG, WRONG), 3),
        (Decoded(tokens=(0, 1, 1), finish="length"), (*right[:2], right[0]), 2),
        (Crashed(crash="E"), (), 7),
    ]
    tally = Tally(
        unit="drawn.same.on", draws=17, crashes=7, outcomes=(), proposals=0, verifications=0, accepted=0,
        told=tuple(said),
    )  # fmt: skip
    assert record_events(study.protocol.configuration("same")) == ("any", "position-1", "position-2")
    assert mismatch_counts(study, study.protocol.configuration("same"), tally) == [5, 3, 3]


def test_record_events_enter_the_budget_and_hypotheses_have_their_own() -> None:
    study = second_study()
    E, R = 7, 3
    budget = budget_of(study, "same")
    assert (budget.B, budget.records) == (4 * (E + R), 4 * R)
    assert budget.level == 0.05 / (4 * (E + R))
    assert design_of(study, study.protocol.configuration("same")).level == budget.level
    assert hypothesis_level(study, "same") == 0.05 / (2 * E)


def test_without_a_reference_no_bound_is_spent_on_records() -> None:
    def none(p: dict[str, Any]) -> None:
        p["configurations"][0]["records"]["reference"] = "none"

    study = second_study(none, lambda f: f["events.json"]["configurations"]["same"].pop("records"))
    assert budget_of(study, "same").B == 4 * 7
    assert record_events(study.protocol.configuration("other")) == ()


def test_no_level_without_an_alpha_for_hypotheses() -> None:
    plain = made_up({"c": Family(reference=None, events=(OtherEvent(id="o"), CrashEvent(id="c")))})
    with pytest.raises(ValueError, match="no alpha"):
        hypothesis_level(plain, "c")
    study = second_study()
    assert study.protocol.hypotheses is not None
    protocol = replace(study.protocol, hypotheses=replace(study.protocol.hypotheses, alpha=None))
    with pytest.raises(ValueError, match="no alpha"):
        hypothesis_level(replace(study, protocol=protocol), "same")
