"""Decisions, predictions and their comparison."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from audits.compare import compare, differences
from audits.decide import Derived, decide
from audits.interval import lower, upper
from audits.jsonc import canonical
from audits.predict import status
from audits.records import Records, Tally
from audits.study import Study

Json = dict[str, Any]
GOOD, ALSO, LONG = ({"tokens": t, "finish": None} for t in ([1], [2], [1, 1, 1]))
CRASH = {"crash": "E"}
LAW = [{"outcome": GOOD, "p": 0.5}, {"outcome": ALSO, "p": 0.5}]
EVENTS: list[Json] = [
    {"id": "good", "kind": "outcome", "outcome": GOOD},
    {"id": "crash", "kind": "crash"},
    {"id": "long", "kind": "longer", "than": 2},
]


def _study(rule: str = "channel-S", law: list[Json] | None = LAW, threshold: float = 0.01) -> Study:
    configuration = {"id": "c", "predicates": ["short"]}
    return Study(
        id="s",
        protocol={
            "configurations": [configuration, {"id": "d"}],
            "stages": [{"id": "s", "configurations": ["c", "d"]}],
            "alpha": 0.05,
            "decision": {
                "rule": rule,
                "threshold": threshold,
                "calibration_allowance": 0.005 if rule == "channel-S" else None,
            },
        },
        blocks=[],
        events={"c": {"reference": law, "events": EVENTS}},
        predicates={"short": {"kind": "max-tokens", "n": 2}},
        predictions=[],
        off="off",
        on="on",
    )


def _tally(proposals: int, *outcomes: tuple[Json, int]) -> Tally:
    return Tally(Counter({canonical(outcome): n for outcome, n in outcomes}), proposals=proposals)


def _decide(study: Study, off: Tally | None, on: Tally | None) -> Derived:
    records = Records()
    for arm, tally in (("off", off), ("on", on)):
        if tally is None:
            records.lost[f"s.c.{arm}"] = "INVALID"
        else:
            records.tallies[f"s.c.{arm}"] = tally
    return decide(study, records, study.configurations[0])


EVEN = ((GOOD, 500), (ALSO, 500))
# off arm, on arm, verdict, reasons, eligible
TABLE: dict[str, tuple[Tally | None, Tally | None, str, list[str], bool]] = {
    "nothing found": (_tally(0, *EVEN), _tally(9, *EVEN), "NOT_REJECTED", ["none"], False),
    "the off arm is lost": (None, _tally(9, *EVEN), "INVALID", ["unit-lost"], False),
    "the on arm is lost": (_tally(0, *EVEN), None, "INVALID", ["unit-lost"], False),
    "the off arm violates": (
        _tally(0, *EVEN, (LONG, 1)), _tally(9, *EVEN), "VOID", ["off-arm-violation"], False,
    ),
    "the off arm is not P": (
        _tally(0, (GOOD, 700), (ALSO, 300)), _tally(9, *EVEN), "VOID", ["calibration-excess"], False,
    ),
    "both": (
        _tally(0, (GOOD, 500), (LONG, 500)), _tally(9, *EVEN), "VOID",
        ["off-arm-violation", "calibration-excess"], False,
    ),
    "void comes before nothing proposed": (
        _tally(0, *EVEN, (LONG, 1)), _tally(0, *EVEN), "VOID", ["off-arm-violation"], False,
    ),
    "nothing proposed": (
        _tally(0, *EVEN), _tally(0, (GOOD, 900), (LONG, 100)), "INCONCLUSIVE", ["nothing-proposed"], False,
    ),
    "one witness": (_tally(0, *EVEN), _tally(9, *EVEN, (LONG, 1)), "FAILS", ["witness"], True),
    "a bound": (_tally(0, *EVEN), _tally(9, (GOOD, 700), (ALSO, 300)), "FAILS", ["bound"], True),
    # A complement contains crashes, so it alone makes nothing eligible.
    "a complement's bound": (
        _tally(0, *EVEN), _tally(9, (GOOD, 300), (ALSO, 700)), "FAILS", ["bound"], False,
    ),
    "a witness and a bound": (
        _tally(0, *EVEN), _tally(9, (GOOD, 500), (LONG, 500)), "FAILS", ["witness", "bound"], True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_channel_s(name: str) -> None:
    off, on, verdict, reasons, eligible = TABLE[name]
    row = _decide(_study(), off, on).row
    assert (row["verdict"], row["reasons"], row["eligible"]) == (verdict, reasons, eligible)


def test_crashes_alone_are_not_eligible() -> None:
    # Crashes take from both outcomes alike, so only `crash` and what contains it grow.
    row = _decide(_study(), _tally(0, *EVEN), _tally(9, (GOOD, 470), (ALSO, 470), (CRASH, 60))).row
    assert (row["verdict"], row["reasons"], row["eligible"]) == ("FAILS", ["bound"], False)
    assert (row["D_event"], row["D_complement"], row["crashes"]) == ("crash", False, {"off": 0, "on": 60})


def test_the_complement_of_crash_is_crash_free() -> None:
    off = _tally(0, (GOOD, 470), (ALSO, 470), (CRASH, 60))
    row = _decide(_study(), off, _tally(9, *EVEN)).row
    assert (row["verdict"], row["D_event"], row["D_complement"]) == ("VOID", "crash", True)


def test_event_gap() -> None:
    study = _study("event-gap", None)
    apart = _decide(study, _tally(0, *EVEN), _tally(0, (GOOD, 700), (ALSO, 300))).row
    assert (apart["verdict"], apart["reasons"], apart["eligible"]) == ("DIFFERS", ["bound"], True)
    assert (apart["calibration"], apart["bounds"][0]["p"], apart["witnesses"]) == (None, None, [])
    same = _decide(study, _tally(0, *EVEN), _tally(0, *EVEN, (LONG, 3))).row
    assert (same["verdict"], same["reasons"], same["eligible"]) == ("NOT_REJECTED", ["none"], False)


def test_the_threshold_itself_does_not_fail() -> None:
    off, on = _tally(0, *EVEN), _tally(9, (GOOD, 700), (ALSO, 300))
    gap = _decide(_study(), off, on).row["D"]
    assert _decide(_study(threshold=gap), off, on).row["verdict"] == "NOT_REJECTED"


def test_numbers_of_a_decision() -> None:
    row = _decide(_study(), _tally(0, *EVEN), _tally(9, (GOOD, 700), (ALSO, 299), (LONG, 1))).row
    level = 0.05 / (2 * 12)
    assert (row["B"], row["level"], row["draws"]) == (12, level, {"off": 1000, "on": 1000})
    good = row["bounds"][0]
    assert (good["k_off"], good["k_on"], good["p"]) == (500, 700, 0.5)
    assert good["L_on"] == lower(700, 1000, level)
    assert good["U_off"] == upper(500, 1000, level)
    assert row["D"] == good["L_on"] - good["U_off"]
    # Nothing is known against the complement of an event never seen: 1 - U_off of 0 draws against P = 1.
    assert row["calibration"]["passed"]
    assert (row["calibration"]["event"], row["calibration"]["complement"]) == ("crash", False)
    assert row["witnesses"] == [{"outcome": LONG, "predicate": "short", "count": 1}]


def test_a_lost_arm_leaves_only_what_does_not_rest_on_it() -> None:
    off, on = _tally(0, *EVEN), _tally(9, *EVEN)
    row = _decide(_study(), None, on).row
    assert (row["draws"], row["crashes"]) == ({"off": None, "on": 1000}, {"off": None, "on": 0})
    assert (row["proposals"], row["verifications"], row["accepted"]) == (9, 0, 0)
    assert (row["bounds"], row["calibration"], row["D"], row["D_event"]) == ([], None, None, None)
    row = _decide(_study(), off, None).row
    assert (row["proposals"], row["verifications"], row["accepted"]) == (None, None, None)


def _verdict(*wanted: str) -> Json:
    return {"kind": "verdict", "configuration": "x", "in": list(wanted)}


def _count(verdict: str, **limits: int) -> Json:
    return {"kind": "count", "configurations": ["x", "y", "z"], "verdict": verdict, **limits}


OPEN = {"x": "INVALID", "y": "FAILS", "z": "NOT_REJECTED"}
ALL = ("VOID", "INCONCLUSIVE", "FAILS", "NOT_REJECTED")
PREDICTIONS: list[tuple[Json, dict[str, str], str, str]] = [
    (_verdict("FAILS"), {"x": "FAILS"}, "channel-S", "HELD"),
    (_verdict("FAILS", "VOID"), {"x": "VOID"}, "channel-S", "HELD"),
    (_verdict("FAILS"), {"x": "NOT_REJECTED"}, "channel-S", "FAILED"),
    (_verdict("FAILS"), OPEN, "channel-S", "NOT_DETERMINED"),
    (_verdict(*ALL), OPEN, "channel-S", "HELD"),
    (_verdict("DIFFERS"), OPEN, "channel-S", "FAILED"),
    (_verdict("DIFFERS", "NOT_REJECTED"), OPEN, "event-gap", "HELD"),
    (_verdict("INVALID"), OPEN, "channel-S", "HELD"),
    (_verdict("INVALID", "FAILS"), {"x": "VOID"}, "channel-S", "FAILED"),
    (_count("FAILS", at_least=1), OPEN, "channel-S", "HELD"),
    (_count("FAILS", at_least=2), OPEN, "channel-S", "NOT_DETERMINED"),
    (_count("FAILS", at_least=3), OPEN, "channel-S", "FAILED"),
    (_count("FAILS", at_most=2), OPEN, "channel-S", "HELD"),
    (_count("FAILS", at_most=1), OPEN, "channel-S", "NOT_DETERMINED"),
    (_count("FAILS", at_most=0), OPEN, "channel-S", "FAILED"),
    (_count("FAILS", at_least=1, at_most=2), OPEN, "channel-S", "HELD"),
    (_count("FAILS", at_least=2, at_most=2), OPEN, "channel-S", "NOT_DETERMINED"),
    (_count("DIFFERS", at_most=0), OPEN, "channel-S", "HELD"),
    (_count("INVALID", at_least=1), OPEN, "channel-S", "HELD"),
    (_count("INVALID", at_most=0), OPEN, "channel-S", "FAILED"),
    (_verdict("FAILS"), OPEN, "records", "NOT_DETERMINED"),
    (_verdict("VOID", "INCONCLUSIVE", "FAILS", "NOT_REJECTED", "INCOMPLETE"), OPEN, "records", "HELD"),
    (_verdict("DIFFERS"), OPEN, "records", "FAILED"),
    (_verdict("COMPATIBLE"), OPEN, "hypothesis", "NOT_DETERMINED"),
    (_verdict("COMPATIBLE", "NOT_COMPATIBLE", "VOID"), OPEN, "hypothesis", "HELD"),
    (_count("COMPATIBLE", at_least=1), OPEN, "hypothesis", "NOT_DETERMINED"),
    (_count("INVALID", at_least=1), OPEN, "hypothesis", "HELD"),
]


@pytest.mark.parametrize("row", range(len(PREDICTIONS)))
def test_predictions(row: int) -> None:
    claim, verdicts, rule, expected = PREDICTIONS[row]
    assert status(claim, verdicts, rule) == expected


DIFFERENCES: list[tuple[Any, Any, int]] = [
    ({"a": 1}, {"a": 1.00000000009}, 0),
    ({"a": 1}, {"a": 1.0000000002}, 1),
    ({"a": 1}, {"a": True}, 1),
    ({"a": None}, {"a": 0}, 1),
    ({"a": [1, 2]}, {"a": [1]}, 1),
    ({"a": 1}, {"b": 1}, 2),
    ({"a/b": "x"}, {"a/b": "y"}, 1),
    ([], {}, 1),
]


@pytest.mark.parametrize("row", range(len(DIFFERENCES)))
def test_differences(row: int) -> None:
    claimed, derived, expected = DIFFERENCES[row]
    assert len(list(differences(claimed, derived))) == expected


def test_events_that_tie_but_for_rounding_may_be_named_either_way() -> None:
    derived = _decide(_study(), _tally(0, *EVEN), _tally(9, *EVEN))
    assert compare(dict(derived.row), derived) == []
    # `crash` and `long` were never seen on either arm: their gaps are equal.
    calibration = derived.row["calibration"] | {"event": "long"}
    assert compare(derived.row | {"calibration": calibration}, derived) == []
    for wrong in ({"event": "good"}, {"complement": True}, {"event": "none"}):
        claimed = derived.row | {"calibration": derived.row["calibration"] | wrong}
        assert compare(claimed, derived), wrong
    assert compare(derived.row | {"D_event": "good"}, derived) == [
        '/D_event: claimed "good", derived "crash"'
    ]
