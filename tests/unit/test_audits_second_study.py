"""Whole studies of edition 2: what follows from their records, what is refused, what claims disagree."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from audits_fixture import Builder
from audits_kit import change, drop, failed, look, make_keys, put, resumed
from audits_plan import Plan, exact_plan, second_plan
from audits_second import HALF_D, PLAN, SECOND_EVENTS, TABLE, Second, entry, replayed
from audits_slow import CRASH, A, B, C, D, Json
from audits_trees import became, bent, off, on

from audits.report import Outcome


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_keys(tmp_path_factory.mktemp("audit-keys"))


def claim(id_: str, channel: str, *verdicts: str) -> Json:
    said = {"kind": "verdict", "configuration": "probe", "in": [*verdicts], "channel": channel}
    return {"id": id_, "statement": "x", "claim": said}


PREDICTIONS = [
    claim("draws", "draws", "FAILS"),
    claim("records", "records", "FAILS", "INCONCLUSIVE"),
    claim("hypothesis", "hypothesis", "COMPATIBLE"),
    {
        "id": "some", "statement": "x",
        "claim": {
            "kind": "count", "configurations": ["control", "probe"], "verdict": "FAILS", "at_least": 1,
            "channel": "records",
        },
    },
]  # fmt: skip


def second(own: Json | None = None, **options: Any) -> Plan:
    """A study of edition 2; ``own`` is what is different in ``Second``."""
    return second_plan(second=Second(**(own or {})), **({"predictions": PREDICTIONS} | options))


def drifting(arm_: str, *positions: int, by: float = 1.0) -> Callable[[str, str, int, Json], list[Json]]:
    """Records that are off at some positions, on one arm of `control`."""

    def record(c: str, arm: str, draw: int, outcome: Json) -> list[Json]:
        told = replayed(outcome)
        for position in positions:
            if (c, arm) == ("control", arm_) and position <= len(told):
                told[position - 1]["values"][0] += by
        return told

    return record


def even(c: str, draw: int) -> Json:
    return [A, B, A, C][draw % 4]


def law(*rows: tuple[Json, float]) -> list[Json]:
    return [{"outcome": outcome, "p": p} for outcome, p in rows]


# A plan; of `control` and `probe` the verdict and that on the records; the status of the hypothesis.
STUDIES: dict[str, tuple[Plan, list[str], list[str | None], str | None]] = {
    "as it is": (second(), ["NOT_REJECTED", "FAILS"], ["NOT_REJECTED", "FAILS"], "COMPATIBLE"),
    "records that drift": (
        second({"record": drifting("on", 1, 3)}, on=even), ["NOT_REJECTED"] * 2, ["FAILS", "NOT_REJECTED"],
        "NOT_COMPATIBLE",
    ),
    "records that drift within the tolerance": (
        second({"record": drifting("on", 1, by=0.0099)}), ["NOT_REJECTED", "FAILS"],
        ["NOT_REJECTED", "FAILS"], "COMPATIBLE",
    ),
    "records that drift on the off arm": (
        second({"record": drifting("off", 2)}, on=even), ["NOT_REJECTED"] * 2, ["NOT_REJECTED"] * 2,
        "NOT_COMPATIBLE",
    ),
    "one position too many": (
        second({"record": lambda c, arm, j, y: replayed(y) + [entry(-1, -2)] * (arm == "on")}),
        ["NOT_REJECTED", "FAILS"], ["FAILS", "FAILS"], "COMPATIBLE",
    ),
    "nothing told": (
        second({"record": lambda c, arm, j, y: []}), ["NOT_REJECTED", "FAILS"], ["NOT_REJECTED"] * 2,
        "COMPATIBLE",
    ),
    "a table of fewer prefixes": (
        second({"table": {key: TABLE[key] for key in ((), (1,))}}), ["NOT_REJECTED", "FAILS"],
        ["NOT_REJECTED", "NOT_REJECTED"], "COMPATIBLE",
    ),
    "crashes": (
        second(on=lambda c, j: CRASH), ["FAILS", "FAILS"], ["NOT_REJECTED"] * 2, "NOT_COMPATIBLE",
    ),
    "nothing proposed": (
        second(proposals=lambda c: 0), ["INCONCLUSIVE"] * 2, ["INCONCLUSIVE"] * 2, "COMPATIBLE",
    ),
    "void": (second(off=lambda c, j: D), ["VOID"] * 2, ["VOID"] * 2, "VOID"),
    "an on arm lost": (
        second(invalid=("main.probe.on",)), ["NOT_REJECTED", "INVALID"], ["NOT_REJECTED", "INVALID"],
        "INVALID",
    ),
    "an off arm lost": (
        second(invalid=("main.probe.off",)), ["NOT_REJECTED", "INVALID"], ["NOT_REJECTED", "INVALID"],
        "INVALID",
    ),
    "no reference to name": (
        second({"records": {"control": PLAN | {"reference": "none"}, "probe": PLAN}}),
        ["NOT_REJECTED", "FAILS"], ["INCOMPLETE", "FAILS"], "COMPATIBLE",
    ),
    "no records and no hypothesis": (
        second({"records": {}, "laws": {}}, predictions=None), ["NOT_REJECTED", "FAILS"], [None, None], None,
    ),
    "a law with a crash": (
        second({"laws": {"probe": law((A, 0.5), (CRASH, 0.5))}},
               on=lambda c, j: [A, CRASH][j % 2] if c == "probe" else even(c, j)),
        ["NOT_REJECTED", "FAILS"], ["NOT_REJECTED"] * 2, "COMPATIBLE",
    ),
    "within the allowance": (
        second({"laws": {"probe": law((A, 0.01), (D, 0.99))}, "allowance": 0.5}),
        ["NOT_REJECTED", "FAILS"], ["NOT_REJECTED", "FAILS"], "COMPATIBLE",
    ),
    "beyond the allowance": (
        second({"laws": {"probe": law((A, 0.01), (D, 0.99))}}),
        ["NOT_REJECTED", "FAILS"], ["NOT_REJECTED", "FAILS"], "NOT_COMPATIBLE",
    ),
}  # fmt: skip


LOST = {"records": "NOT_DETERMINED", "hypothesis": "NOT_DETERMINED", "some": "NOT_DETERMINED"}
TOLD: dict[str, dict[str, str]] = {
    "as it is": {"draws": "HELD", "records": "HELD", "hypothesis": "HELD", "some": "HELD"},
    "void": {"records": "FAILED", "hypothesis": "FAILED", "some": "FAILED"},
    "an on arm lost": LOST,
    "an off arm lost": LOST,
}
"""The status of predictions, by study and then by prediction."""


@pytest.mark.parametrize("name", STUDIES)
def test_what_follows_from_whole_studies(tmp_path: Path, keys: Path, name: str) -> None:
    plan, verdicts, records, status = STUDIES[name]
    study = Builder(tmp_path / "r", keys, plan).build()
    outcome = look(study)
    assert failed(outcome) == {}
    assert outcome.result == "AGREES"
    # The auditor agrees with the slow twin on every value; these are what both say.
    rows = json.loads((study / "analysis/decisions.json").read_bytes())["configurations"]
    assert [row["verdict"] for row in rows] == verdicts
    assert [row.get("records", {}).get("verdict") for row in rows] == records
    assert rows[1].get("hypothesis", {}).get("status") == status
    predicted = {row["id"]: row["status"] for row in outcome.predictions}
    assert predicted == predicted | TOLD.get(name, {})


# Of the exact stage: the on arm's tree and mu_H of `probe`; the exact verdict, and the hypothesis' status.
EXACT: dict[str, tuple[Json, list[Json], str, str]] = {
    "the mechanism's own law": (
        on(branches=became(D, 1, 4)), law((A, 0.5), (D, 0.25), (C, 0.25)), "DEPARTS", "MATCHES",
    ),
    "another law": (on(branches=became(D, 1, 4)), HALF_D, "DEPARTS", "DEPARTS"),
    "P where P is meant": (on(), law((A, 0.5), (D, 0.5)), "EQUAL_WITHIN_TOLERANCE", "DEPARTS"),
    "an arm that is bounded": (
        on(branches=became(D, 1, 4)[:4], unexplored=1 / 12), law((A, 0.5), (D, 0.25), (C, 0.25)),
        "DEPARTS", "INCONCLUSIVE",
    ),
    "no tree": (on(branches=bent(0, 0, 0.25)), HALF_D, "VOID", "VOID"),
}  # fmt: skip


def walked(tree: Json, mechanism: list[Json], **options: Any) -> Plan:
    """`probe` is drawn and walked, `deep` walked alone; both are registered with one law."""
    return exact_plan(
        second=Second(laws={"deep": mechanism, "probe": mechanism}), events=list(SECOND_EVENTS),
        trees=lambda c, arm: tree if arm == "on" else off(), predictions=PREDICTIONS[:3], **options,
    )  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_hypotheses_of_an_exact_stage(tmp_path: Path, keys: Path, name: str) -> None:
    tree, mechanism, verdict, status = EXACT[name]
    study = Builder(tmp_path / "r", keys, walked(tree, mechanism)).build()
    outcome = look(study)
    assert failed(outcome) == {}
    decisions = json.loads((study / "analysis/decisions.json").read_bytes())
    rows = decisions["exact"]["configurations"]
    assert [row["verdict"] for row in rows] == [verdict] * 3
    assert [row.get("hypothesis", {}).get("status") for row in rows] == [status, status, None]
    # Only one registered configuration is drawn: its level is 0.05 over 1 of them, 2 bounds, 8 events.
    own = [row.get("hypothesis", {}).get("level") for row in decisions["configurations"]]
    assert own == [None, 0.05 / (1 * 2 * 8)]


def test_a_lost_tree_leaves_no_number_of_the_hypothesis(tmp_path: Path, keys: Path) -> None:
    plan = walked(on(), HALF_D, invalid=("walk.probe.off",))
    study = Builder(tmp_path / "r", keys, plan).build()
    assert failed(look(study)) == {}
    rows = json.loads((study / "analysis/decisions.json").read_bytes())["exact"]["configurations"]
    numbers = dict.fromkeys(("tv_lower", "tv_upper", "null_tv_lower", "null_tv_upper"))
    assert rows[1]["hypothesis"] == {"id": "H-D1-far", "status": "INVALID"} | numbers


RECORD = "records/main.probe.on/00000.jsonl.gz line 2"


def told(edit: Callable[[Json], Any], **options: Any) -> Plan:
    """A change to the record of the second draw of `probe`'s on arm."""

    def second_of_probe(line: Json) -> bool:
        return bool(line["unit"] == "main.probe.on" and line["draw"] == 1)

    return change("record", edit, when=second_of_probe, make=second, upto="collected", **options)


def _crash(line: Json) -> None:
    line["outcome"] = CRASH


REFUSED: dict[str, tuple[Plan, str]] = {
    "no record": (told(drop("record")), "#/record: is not there, and the configuration has records"),
    "a record of what has none": (
        told(put("record", to=[]), own={"records": {"control": PLAN}}, predictions=None),
        "#/record: is there, and the configuration has no records",
    ),
    "a record with a crash": (told(_crash), "#/record: is not [], with a crash"),
    "a value": (told(put("outcome", to={"value": 1})), "#/outcome: a value"),
    "tokens out of order": (
        told(put("record", 1, "tokens", to=[3, 2])), "#/record/1: tokens are not ascending and all different",
    ),
    "a token twice": (told(put("record", 0, "tokens", to=[1, 1])), "#/record/0: tokens are not ascending"),
    "lists of two lengths": (
        told(put("record", 0, "values", to=[1])), "#/record/0: 2 tokens and 1 values",
    ),
    "another text": (told(put("record", 0, "values", 0, to="NaN")), "#/record/0/values/0"),
    "another draw": (told(put("draw", to=2)), "#/draw: is 2, planned as 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_records_that_are_refused(tmp_path: Path, keys: Path, name: str) -> None:
    plan, says = REFUSED[name]
    found = failed(look(Builder(tmp_path / "r", keys, plan).build()))
    assert list(found) == [7]
    assert RECORD + says in found[7]


def test_a_record_in_edition_1(tmp_path: Path, keys: Path) -> None:
    plan = change("record", put("record", to=[]), upto="collected")
    found = failed(look(Builder(tmp_path / "r", keys, plan).build()))
    assert "#/record: is there, and the configuration has no records" in found[7]


PROBE = ("configurations", 1)
CLAIMS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "exposed": (put(*PROBE, "exposed", to=39), "probe /exposed: claimed 39, derived 40"),
    "exposed left out": (drop(*PROBE, "exposed"), "probe /exposed: not claimed"),
    "records left out": (drop(*PROBE, "records"), "probe /records: not claimed"),
    "the hypothesis left out": (drop(*PROBE, "hypothesis"), "probe /hypothesis: not claimed"),
    "a hypothesis of what has none": (
        lambda v: v["configurations"][0].update(hypothesis=v["configurations"][1]["hypothesis"]),
        "control /hypothesis: claimed, but not derived",
    ),
    "a verdict on records": (put(*PROBE, "records", "verdict", to="NOT_REJECTED"), "/records/verdict"),
    "a reason": (put(*PROBE, "records", "reasons", to=["none"]), "/records/reasons/0"),
    "a count": (put(*PROBE, "records", "bounds", 3, "k_on", to=19), "/records/bounds/3/k_on"),
    "a bound": (put(*PROBE, "records", "bounds", 0, "L_on", to=0.3), "/records/bounds/0/L_on"),
    "a position left out": (drop(*PROBE, "records", "bounds", 3), "/records/bounds"),
    "D": (put(*PROBE, "records", "D", to=0.0761), "/records/D"),
    "the event of D": (put(*PROBE, "records", "D_event", to="position-1"), "/records/D_event"),
    "B without the record events": (put(*PROBE, "B", to=32), "/B: claimed 32, derived 48"),
    "a status": (put(*PROBE, "hypothesis", "status", to="NOT_COMPATIBLE"), "/hypothesis/status"),
    "a hypothesis": (put(*PROBE, "hypothesis", "id", to="H-D2-cfg"), "/hypothesis/id"),
    "a level": (put(*PROBE, "hypothesis", "level", to=0.05), "/hypothesis/level"),
    "an excess": (put(*PROBE, "hypothesis", "excess", to=0.001), "/hypothesis/excess"),
    "its event": (put(*PROBE, "hypothesis", "event", to="a"), "/hypothesis/event"),
    "what is impossible": (put(*PROBE, "hypothesis", "impossible", to=1), "/hypothesis/impossible"),
    "an excess over P": (put(*PROBE, "hypothesis", "null_excess", to=0.2), "/hypothesis/null_excess"),
    "its event over P": (put(*PROBE, "hypothesis", "null_event", to="crash"), "/hypothesis/null_event"),
    "what is impossible by P": (
        put(*PROBE, "hypothesis", "null_impossible", to=0), "/hypothesis/null_impossible",
    ),
    "that P is rejected": (put(*PROBE, "hypothesis", "null_rejected", to=False), "/null_rejected"),
    "a prediction on records": (
        put("predictions", 1, "status", to="FAILED"), "prediction records: claimed FAILED, derived HELD",
    ),
    "a prediction on a hypothesis": (
        put("predictions", 2, "status", to="FAILED"), "prediction hypothesis: claimed FAILED, derived HELD",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Builder:
    builder = Builder(tmp_path_factory.mktemp("collected") / "r", keys, second(upto="collected"))
    builder.build()
    return builder


def claiming(collected: Builder, root: Path, edit: Callable[[Any], Any]) -> Outcome:
    """The audit of what was collected, with decisions that are edited."""
    builder = resumed(collected, root, change("decisions", edit, make=second))
    builder.analyse()
    builder.audit()
    return look(builder.folder)


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_that_does_not_follow_disagrees(tmp_path: Path, collected: Builder, name: str) -> None:
    edit, says = CLAIMS[name]
    outcome = claiming(collected, tmp_path / "r", edit)
    found = failed(outcome)
    assert list(found) == [13], found
    assert says in found[13]
    assert outcome.result == "DISAGREES"


def _exposed(decisions: Json) -> None:
    decisions["configurations"][0]["exposed"] = 40


def _nudge(decisions: Json) -> None:
    """Numbers within the tolerance, and of events that tie another one."""
    row = decisions["configurations"][1]
    row["records"]["D"] += 5e-11
    row["records"]["D_event"] = "position-3"
    row["hypothesis"]["null_excess"] -= 5e-11
    row["hypothesis"]["event"] = "c"


def test_what_ties_may_be_named_either_way(tmp_path: Path, collected: Builder) -> None:
    # The 20 draws of D mismatch at 3, 4 and 5: `any` and `position-3` have equal bounds. No draw is B or C,
    # to which mu_H gives nothing: the excess of both events is 0.
    assert claiming(collected, tmp_path / "r", _nudge).result == "AGREES"


def test_edition_1_claims_nothing_of_edition_2(tmp_path: Path, keys: Path) -> None:
    found = failed(look(Builder(tmp_path / "r", keys, change("decisions", _exposed)).build()))
    assert "control /exposed: claimed, but not derived" in found[13]


def test_an_exact_hypothesis_that_does_not_follow(tmp_path: Path, keys: Path) -> None:
    def edit(decisions: Json) -> None:
        for row in decisions["exact"]["configurations"][:2]:
            row["hypothesis"]["null_tv_upper"] += 2e-10

    plan = change("decisions", edit, make=lambda **options: walked(on(), HALF_D, **options))
    found = failed(look(Builder(tmp_path / "r", keys, plan).build()))
    assert "exact probe /hypothesis/null_tv_upper" in found[13]
