"""What edition 2 adds to decisions, verdict by verdict (docs/formats.md sections 11, 12, 15 and 16)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest
from exact_fixture import exact_files, exact_protocol
from exact_leaves import FIRST, SECOND, SKEWED
from second_fixture import MECHANISM, encoded, second_study

from bench.synthetic import SEAL
from bench.trees import leaf, unit_tree
from prereg.analyse.decide import decide
from prereg.analyse.tally import Tally
from prereg.codec.convert import to_json
from prereg.codec.study_files import parse_study
from prereg.model.law import Crashed, Decoded, Outcome, RecordEntry
from prereg.model.predictions import Prediction, VerdictClaim
from prereg.model.study import Study
from prereg.model.tree import UnitTree
from prereg.model.verdict import Decision, Decisions

N = 400
CYCLE = tuple(
    Decoded(tokens=(i, j), finish="length") for i in FIRST for j, n in ((0, 1), (1, 3)) for _ in range(n)
)


def entries(study: Study, outcome: Outcome, shift: float) -> tuple[RecordEntry, ...]:
    """The record that the reference has, the second entry of it off by `shift`."""
    if isinstance(outcome, Crashed):
        return ()
    assert isinstance(outcome, Decoded)
    rows = {r.prefix: r.entry for r in study.events.configurations["same"].records or ()}
    first, second = rows.get((), RecordEntry(tokens=(), values=())), rows.get(outcome.tokens[:1])
    if second is None:
        return (first,)
    return (first, replace(second, values=tuple(float(v) + shift for v in second.values)))


def arm(
    study: Study, name: str, cycle: tuple[Outcome, ...] = CYCLE, *, proposals: int = 0, shift: float = 0.0
) -> Tally:
    outcomes = {o: N * cycle.count(o) // len(cycle) for o in dict.fromkeys(cycle)}
    return Tally(
        unit=name,
        draws=sum(outcomes.values()),
        crashes=sum(n for o, n in outcomes.items() if isinstance(o, Crashed)),
        outcomes=tuple(outcomes.items()),
        proposals=proposals,
        verifications=proposals,
        accepted=0,
        exposed=min(proposals, N),
        told=tuple((o, entries(study, o, shift), n) for o, n in outcomes.items()),
    )


def tree(second: dict[int, float]) -> UnitTree:
    pairs = [(i, j) for i in FIRST for j in second]
    return unit_tree(
        [
            leaf((i, j), (FIRST[i], second[j]), Decoded(tokens=(i, j), finish="length"), proposals=1)
            for i, j in pairs
        ]
    )


TREES = {
    "walked.other.off": tree(SECOND),
    "walked.other.on": tree(SKEWED),
    "walked.same.off": tree(SECOND),
    "walked.same.on": tree(SECOND),
}


def decided(
    study: Study | None = None,
    *,
    off: dict[str, Any] | None = None,
    on: dict[str, Any] | None = None,
    lost: Collection[str] = (),
) -> Decisions:
    given = second_study() if study is None else study
    tallies = {
        "drawn.same.off": arm(given, "drawn.same.off", **(off or {})),
        "drawn.same.on": arm(given, "drawn.same.on", **{"proposals": 10, **(on or {})}),
    }
    kept = {name: t for name, t in tallies.items() if name not in lost}
    return decide(given, SEAL, kept, lost, {name: t for name, t in TREES.items() if name not in lost})


def same(decisions: Decisions) -> Decision:
    (decision,) = decisions.configurations
    return decision


CRASHY = (*CYCLE[:7], Crashed(crash="E"))
TOO_LONG = (*CYCLE[:7], Decoded(tokens=(0, 1, 1), finish="length"))


def unreferenced() -> Study:
    def none(p: dict[str, Any]) -> None:
        p["configurations"][0]["records"]["reference"] = "none"

    return second_study(none, lambda f: f["events.json"]["configurations"]["same"].pop("records"))


@pytest.mark.parametrize(
    ("given", "verdict", "reason", "channel_s"),
    [
        ({}, "NOT_REJECTED", "none", "NOT_REJECTED"),
        ({"on": {"shift": 0.1}}, "FAILS", "mismatch", "NOT_REJECTED"),
        ({"on": {"shift": 0.0005}}, "NOT_REJECTED", "none", "NOT_REJECTED"),
        ({"on": {"shift": 0.1}, "off": {"shift": 0.1}}, "NOT_REJECTED", "none", "NOT_REJECTED"),
        ({"on": {"shift": 0.1, "proposals": 0}}, "INCONCLUSIVE", "nothing-proposed", "INCONCLUSIVE"),
        ({"off": {"cycle": TOO_LONG}}, "VOID", "calibration", "VOID"),
        ({"lost": ["drawn.same.off"]}, "INVALID", "unit-lost", "INVALID"),
        ({"lost": ["drawn.same.on"]}, "INVALID", "unit-lost", "INVALID"),
        ({"study": unreferenced()}, "INCOMPLETE", "no-reference", "NOT_REJECTED"),
        ({"study": unreferenced(), "lost": ["drawn.same.on"]}, "INCOMPLETE", "no-reference", "INVALID"),
    ],
)
def test_records(given: dict[str, Any], verdict: str, reason: str, channel_s: str) -> None:
    decision = same(decided(**given))
    assert decision.verdict == channel_s
    records = decision.records
    assert records is not None and (records.verdict, records.reasons) == (verdict, (reason,))
    bare = verdict in ("INCOMPLETE", "INVALID")
    assert (records.D is None, records.D_event is None, records.bounds == ()) == (bare, bare, bare)


def test_a_failure_of_records_is_one_of_records_alone() -> None:
    plain, failing = same(decided()), same(decided(on={"shift": 0.1}))
    assert failing.records is not None and failing.records.D_event == "any"
    assert [(r.event, r.k_on) for r in failing.records.bounds] == [
        ("any", N), ("position-1", 0), ("position-2", N),
    ]  # fmt: skip
    assert replace(plain, records=None) == replace(failing, records=None)


def test_the_other_law_is_compatible_with_its_mechanism_and_with_no_other() -> None:
    skewed = tuple(Decoded(tokens=(1 - o.tokens[0], 1 - o.tokens[1]), finish="length") for o in CYCLE)
    found = same(decided(on={"cycle": skewed})).hypothesis
    assert found is not None
    assert (found.id, found.status, found.null_rejected) == (MECHANISM, "COMPATIBLE", True)
    assert found.excess is not None and found.excess == 0 < 0.005 < (found.null_excess or 0)
    assert found.level == 0.05 / 14
    as_p = same(decided()).hypothesis
    assert as_p is not None and (as_p.status, as_p.null_rejected) == ("NOT_COMPATIBLE", False)


@pytest.mark.parametrize(
    ("given", "status", "numbers"),
    [
        ({"lost": ["drawn.same.on"]}, "INVALID", False),
        ({"lost": ["drawn.same.off"]}, "INVALID", False),
        ({"off": {"cycle": TOO_LONG}}, "VOID", True),
        ({"on": {"proposals": 0}}, "NOT_COMPATIBLE", True),
    ],
)
def test_where_compatibility_says_less(given: dict[str, Any], status: str, numbers: bool) -> None:
    found = same(decided(**given)).hypothesis
    assert found is not None and found.status == status
    said = to_json(found)
    rest = [v for k, v in said.items() if k not in ("id", "status", "level")]
    assert said["level"] == 0.05 / 14
    assert all(v is not None for v in rest) if numbers else all(v is None for v in rest)


def test_what_a_mechanism_cannot_return_is_impossible() -> None:
    found = same(decided(on={"cycle": CRASHY})).hypothesis
    assert found is not None and (found.impossible, found.null_impossible) == (N // 8, N // 8)
    assert found.null_rejected


def test_exposure_counts_draws_and_is_null_with_its_unit() -> None:
    assert to_json(same(decided(on={"proposals": 37})))["exposed"] == 37
    assert to_json(same(decided(lost=["drawn.same.on"])))["exposed"] is None
    assert to_json(same(decided(lost=["drawn.same.off"])))["exposed"] == 10


def test_trees_are_held_to_the_mechanism_and_to_p() -> None:
    exact = decided().exact
    assert exact is not None
    other, plain = (d.hypothesis for d in exact.configurations)
    assert other is not None and plain is not None
    assert (other.status, plain.status) == ("MATCHES", "DEPARTS")
    assert (other.tv_upper, other.null_tv_lower) == (0.0, 0.5)
    assert (plain.tv_lower, plain.null_tv_upper) == (0.5, 0.0)
    lost = decided(lost=["walked.other.off"]).exact
    assert lost is not None
    gone = to_json(lost.configurations[0].hypothesis)
    assert gone == {
        "id": MECHANISM, "status": "INVALID", "tv_lower": None, "tv_upper": None,
        "null_tv_lower": None, "null_tv_upper": None,
    }  # fmt: skip


def test_what_is_unexplored_leaves_the_mechanism_open() -> None:
    short = unit_tree(list(tree(SKEWED).leaves[:3]), unexplored=0.125)
    given = {**TREES, "walked.other.on": short}
    study = second_study()
    tallies = {f"drawn.same.{a}": arm(study, f"drawn.same.{a}", proposals=1) for a in ("off", "on")}
    exact = decide(study, SEAL, tallies, (), given).exact
    assert exact is not None
    found = exact.configurations[0].hypothesis
    assert found is not None and found.status == "INCONCLUSIVE"
    assert (found.tv_lower, found.tv_upper) == (0.0, 0.125)


@pytest.mark.parametrize(
    ("channel", "expected", "lost", "status"),
    [
        ("records", ("FAILS",), (), "HELD"),
        ("records", ("NOT_REJECTED",), (), "FAILED"),
        ("records", ("FAILS",), ("drawn.same.on",), "NOT_DETERMINED"),
        ("records", ("INVALID",), ("drawn.same.on",), "HELD"),
        ("hypothesis", ("NOT_COMPATIBLE",), (), "HELD"),
        ("hypothesis", ("COMPATIBLE", "NOT_COMPATIBLE", "VOID"), ("drawn.same.on",), "HELD"),
        ("hypothesis", ("COMPATIBLE",), ("drawn.same.on",), "NOT_DETERMINED"),
        ("draws", ("NOT_REJECTED",), (), "HELD"),
    ],
)
def test_predictions(channel: Any, expected: tuple[str, ...], lost: tuple[str, ...], status: str) -> None:
    claim = VerdictClaim(configuration="same", in_=expected, channel=channel)
    study = second_study()
    given = replace(
        study,
        predictions=replace(study.predictions, predictions=(Prediction(id="p", statement="-", claim=claim),)),
    )
    assert decided(given, on={"shift": 0.1}, lost=lost).predictions[0].status == status


def test_edition_1_gains_nothing() -> None:
    study = parse_study(encoded(exact_files(exact_protocol())))
    found = to_json(decided(study))
    assert not {"exposed", "records", "hypothesis"} & found["configurations"][0].keys()
    assert all("hypothesis" not in d for d in found["exact"]["configurations"])
