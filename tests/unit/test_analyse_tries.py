"""What edition 3 adds to decisions: attempts, second results, ceilings (docs/formats.md section 21)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from second_fixture import second_study
from test_analyse_predictions import POSSIBLE, truth
from test_analyse_second_edition import TREES, arm, decided

from bench.synthetic import SEAL
from prereg.analyse.decide import decide
from prereg.analyse.tally import Tally
from prereg.analyse.tries import NO_TRIES, Tries, tries_of
from prereg.codec.convert import to_json
from prereg.codec.schema import validate
from prereg.model.attempts import Attempts, Cause, Copies, Duplicates, Tried
from prereg.model.predictions import Claim, CountClaim, Prediction, VerdictClaim
from prereg.model.seal import Entry, EntryType
from prereg.model.study import Study
from prereg.model.verdict import Decisions
from prereg.stats.channels import contradiction

CAUSES: tuple[Cause, ...] = get_args(Cause)
UNITS = tuple(
    f"{stage}.{arm}" for stage in ("drawn.same", "walked.same", "walked.other") for arm in ("off", "on")
)


def third_study(on_ceiling: str = "INCONCLUSIVE", attempts: int = 2, missing: str = "bound") -> Study:
    def change(protocol: dict[str, Any]) -> None:
        protocol |= {"edition": 3, "attempts": attempts, "missing": missing}
        protocol["ceilings"]["on_ceiling"] = on_ceiling

    return second_study(change)


def lost_to(cause: Cause, attempt: int = 2) -> Tried:
    return Tried(attempt=attempt, over=True, cause=cause, reason="it went")


def decided_with(
    study: Study, lost: Mapping[str, Tried], *, missing: Collection[str] = (), tries: Tries | None = None
) -> Decisions:
    """The decisions where the units of `lost` are over, those of `missing` not there, others well."""
    there = {name for name in UNITS if name not in lost and name not in missing}
    tallies: dict[str, Tally] = {
        name: arm(study, name, proposals=10 * name.endswith("on"))
        for name in ("drawn.same.off", "drawn.same.on")
        if name in there
    }
    trees = {name: tree for name, tree in TREES.items() if name in there}
    told = Tries(tried=lost, copies={}) if tries is None else tries
    return decide(study, SEAL, tallies, lost.keys(), trees, told)


def entry(kind: EntryType, seq: int = 1, **body: Any) -> Entry:
    return Entry(
        seq=seq, time="2026-03-01T12:00:00.000000+00:00", type=kind, actor="col@example.org", body=body,
        body_sha256="0" * 64, prev="0" * 64,
    )  # fmt: skip


def failed(unit: str, attempt: int, cause: Cause) -> Entry:
    return entry("unit-invalid", unit=unit, attempt=attempt, reason="it went", cause=cause)


def second_result(unit: str, differing: int, attempt: int = 1) -> Entry:
    return entry("duplicate", unit=unit, shard=0, attempt=attempt, differing=differing)


ENDED = entry("collection-ended", complete=True)


def test_a_ledger_tells_of_attempts_and_of_second_results() -> None:
    entries = [
        failed("a", 1, "engine"),
        second_result("b", 3),
        second_result("b", 0),
        ENDED,
        failed("c", 1, "unit-ceiling"),
        second_result("b", 2, attempt=2),
        failed("a", 2, "request-ceiling"),
        ENDED,
        failed("late", 1, "engine"),
        second_result("late", 1),
    ]
    found = tries_of(entries, third_study().protocol, {})
    assert {name: (one.attempt, one.over) for name, one in found.tried.items()} == {
        "a": (2, True), "c": (1, True),
    }  # fmt: skip
    assert found.copies == {"b": Copies(copies=3, differing=5)}
    assert [found.attempt(name) for name in "abc"] == [2, 1, 1]
    assert [found.by_ceiling(name) for name in "abc"] == [True, False, True]
    assert tries_of(entries[:3], third_study().protocol, {}) == NO_TRIES


def test_they_stand_beside_every_decision() -> None:
    tries = Tries(
        tried={"drawn.same.on": Tried(attempt=2), "walked.other.off": Tried(attempt=3)},
        copies={
            "drawn.same.off": Copies(copies=1, differing=0),
            "walked.other.on": Copies(copies=2, differing=4),
        },
    )
    decisions = decided_with(third_study(), {}, tries=tries)
    none = Copies(copies=0, differing=0)
    (drawn,) = decisions.configurations
    assert drawn.attempts == Attempts(off=1, on=2)
    assert drawn.duplicates == Duplicates(off=Copies(copies=1, differing=0), on=none)
    assert decisions.exact is not None
    walked = {d.id: d for d in decisions.exact.configurations}
    assert walked["same"].attempts == Attempts(off=1, on=1)
    assert walked["other"].attempts == Attempts(off=3, on=1)
    assert walked["other"].duplicates == Duplicates(off=none, on=Copies(copies=2, differing=4))
    validate(json.loads(json.dumps(to_json(decisions))), "decisions", where="decisions")


def test_an_earlier_edition_gains_nothing() -> None:
    tries = Tries(tried={"drawn.same.on": lost_to("unit-ceiling", 1)}, copies={})
    study = second_study(lambda p: p.update(missing="bound"))
    decisions = decided_with(study, tries.tried, tries=tries)
    assert decisions == decided(study, lost=["drawn.same.on"])
    assert decisions.configurations[0].verdict == "INVALID"
    for found in to_json(decisions)["configurations"] + to_json(decisions)["exact"]["configurations"]:
        assert not {"attempts", "duplicates"} & found.keys()


OPEN = ("INCONCLUSIVE", ("ceiling",))
LOST = ("INVALID", ("unit-lost",))


@pytest.mark.parametrize(
    ("on_ceiling", "off", "on", "missing", "said"),
    [
        ("INCONCLUSIVE", None, lost_to("unit-ceiling", 1), (), OPEN),
        ("INCONCLUSIVE", lost_to("study-ceiling", 1), None, (), OPEN),
        ("INCONCLUSIVE", None, lost_to("request-ceiling"), (), OPEN),
        ("INCONCLUSIVE", lost_to("request-ceiling"), lost_to("unit-ceiling", 1), (), OPEN),
        ("INCONCLUSIVE", None, lost_to("engine"), (), LOST),
        ("INCONCLUSIVE", lost_to("engine"), lost_to("unit-ceiling", 1), (), LOST),
        ("INCONCLUSIVE", lost_to("unit-ceiling", 1), None, ("on",), LOST),
        ("INCONCLUSIVE", None, None, ("on",), LOST),
        ("INVALID", None, lost_to("unit-ceiling", 1), (), LOST),
        ("INVALID", lost_to("study-ceiling", 1), lost_to("study-ceiling", 1), (), LOST),
    ],
)
@pytest.mark.parametrize("stage", ["drawn.same", "walked.same"])
def test_a_ceiling_leaves_open_what_it_alone_took(
    stage: str, on_ceiling: str, off: Tried | None, on: Tried | None, missing: tuple[str, ...], said: Any
) -> None:
    lost = {f"{stage}.{name}": one for name, one in (("off", off), ("on", on)) if one is not None}
    gone = [f"{stage}.{name}" for name in missing]
    decisions = decided_with(third_study(on_ceiling), lost, missing=gone)
    assert decisions.exact is not None
    walked = {d.id: d for d in decisions.exact.configurations}
    found: Any = decisions.configurations[0] if stage == "drawn.same" else walked["same"]
    other: Any = walked["same"] if stage == "drawn.same" else decisions.configurations[0]
    assert (found.verdict, found.reasons, found.lost) == (*said, True)
    assert not other.lost and not walked["other"].lost
    validate(json.loads(json.dumps(to_json(decisions))), "decisions", where="decisions")


def test_a_unit_that_is_tried_again_is_missing_and_not_left_open() -> None:
    again = Tries(tried={"drawn.same.on": Tried(attempt=2, cause="request-ceiling")}, copies={})
    decisions = decided_with(third_study(), {}, missing=["drawn.same.on"], tries=again)
    assert (decisions.configurations[0].verdict, decisions.configurations[0].reasons) == LOST


lost_units = st.dictionaries(
    st.sampled_from(UNITS), st.builds(lost_to, st.sampled_from(CAUSES), st.integers(1, 2))
)


def claims_on(channel: Any, names: tuple[str, ...], verdicts: tuple[str, ...]) -> st.SearchStrategy[Claim]:
    of_one = st.builds(
        VerdictClaim,
        configuration=st.sampled_from(names),
        in_=st.lists(st.sampled_from(verdicts), min_size=1, unique=True).map(tuple),
        channel=st.just(channel),
    )
    of_all = st.builds(
        CountClaim,
        configurations=st.just(names),
        verdict=st.sampled_from(verdicts),
        at_least=st.integers(0, 3),
        at_most=st.none() | st.integers(0, 3),
        channel=st.just(channel),
    )
    return of_one | of_all


CHANNELS = {
    "draws": (("same",), "channel-S"),
    "exact": (("same", "other"), "exact"),
    "records": (("same",), "records"),
    "hypothesis": (("same",), "hypothesis"),
}


def claims(*more: str) -> st.SearchStrategy[Claim]:
    return st.one_of(
        *(claims_on(channel, names, (*POSSIBLE[rule], *more)) for channel, (names, rule) in CHANNELS.items())
    )


def with_claims(study: Study, made: Collection[Claim]) -> Study:
    listed = tuple(Prediction(id=f"p{i}", statement="-", claim=claim) for i, claim in enumerate(made))
    return replace(study, predictions=replace(study.predictions, predictions=listed))


@settings(max_examples=40)
@given(lost_units, st.lists(claims("INVALID"), min_size=1, max_size=4))
def test_but_for_its_name_what_is_left_open_is_as_if_invalid(
    lost: dict[str, Tried], made: list[Claim]
) -> None:
    left, invalid = (
        decided_with(with_claims(third_study(word), made), lost) for word in ("INCONCLUSIVE", "INVALID")
    )
    one, two = to_json(left), to_json(invalid)
    for d, e in zip(
        (*one["configurations"], *one["exact"]["configurations"]),
        (*two["configurations"], *two["exact"]["configurations"]),
        strict=True,
    ):
        if d["reasons"] == ["ceiling"]:
            assert (d.pop("verdict"), e.pop("verdict")) == ("INCONCLUSIVE", "INVALID")
            assert (d.pop("reasons"), e.pop("reasons")) == (["ceiling"], ["unit-lost"])
    assert one == two


@settings(max_examples=40)
@given(lost_units, claims())
def test_predictions_bound_what_is_left_open_both_ways(lost: dict[str, Tried], claim: Claim) -> None:
    decisions = decided_with(with_claims(third_study(), [claim]), lost)
    names, rule = CHANNELS[claim.channel]
    assert decisions.exact is not None
    said: dict[str, str] = {}
    for d in decisions.exact.configurations if claim.channel == "exact" else decisions.configurations:
        beside = {"records": getattr(d, "records", None), "hypothesis": d.hypothesis}
        if claim.channel == "records":
            said[d.id] = beside["records"].verdict  # type: ignore[union-attr]
        elif claim.channel == "hypothesis":
            said[d.id] = beside["hypothesis"].status  # type: ignore[union-attr]
        else:
            said[d.id] = "INVALID" if d.lost else d.verdict
    options = [POSSIBLE[rule] if said[name] == "INVALID" else (said[name],) for name in names]
    answers = {truth(claim, dict(zip(names, choice, strict=True))) for choice in itertools.product(*options)}
    expected = "NOT_DETERMINED" if len(answers) == 2 else ("HELD" if answers == {True} else "FAILED")
    assert decisions.predictions[0].status == expected


@pytest.mark.parametrize(
    ("expected", "status"),
    [
        (("INCONCLUSIVE",), "NOT_DETERMINED"),
        (("FAILS",), "NOT_DETERMINED"),
        (("FAILS", "NOT_REJECTED", "INCONCLUSIVE", "VOID"), "HELD"),
        (("INVALID",), "HELD"),
    ],
)
def test_left_open_is_not_the_inconclusive_that_somebody_predicted(
    expected: tuple[str, ...], status: str
) -> None:
    claim = VerdictClaim(configuration="same", in_=expected)
    lost = {"drawn.same.on": lost_to("unit-ceiling", 1)}
    decisions = decided_with(with_claims(third_study(), [claim]), lost)
    assert decisions.configurations[0].verdict == "INCONCLUSIVE"
    assert decisions.predictions[0].status == status


@pytest.mark.parametrize("unit", ["drawn.same.on", "walked.same.off"])
def test_channels_do_not_contradict_what_is_left_open(unit: str) -> None:
    decisions = decided_with(third_study(), {unit: lost_to("study-ceiling", 1)})
    assert decisions.exact is not None
    walked = next(d for d in decisions.exact.configurations if d.id == "same")
    assert "INCONCLUSIVE" in (decisions.configurations[0].verdict, walked.verdict)
    assert contradiction(decisions.configurations[0], walked) is None
