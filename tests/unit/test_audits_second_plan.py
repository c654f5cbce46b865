"""Step 5 of a study of edition 2: every rule of sections 6, 9, 15 and 16 with one plan that breaks it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from audits_fixture import Builder
from audits_kit import change, drop, failed, look, make_keys, put
from audits_plan import Plan, exact_plan, second_plan
from audits_second import HALF_D, HYPOTHESIS, PLAN, SECOND_EVENTS, TABLE, Second, entry
from audits_slow import CRASH, A, B, C, D, Json

from audits import rules


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_keys(tmp_path_factory.mktemp("audit-keys"))


Edit = Callable[[Any], Any]


def law(*rows: tuple[Json, float]) -> list[Json]:
    return [{"outcome": outcome, "p": p} for outcome, p in rows]


def _as_it_is(name: str, value: Any) -> Any:
    return value


def planned(edit: Callable[[str, Any], Any] = _as_it_is, **options: Any) -> Plan:
    """A plan of edition 2 with something else in it."""
    return second_plan(second=Second(**options), upto="sealed", edit=edit)


def walked(edit: Callable[[str, Any], Any] = _as_it_is, **options: Any) -> Plan:
    """One with an exact stage, which alone has `deep`."""
    given: Json = {"second": Second(**options), "events": list(SECOND_EVENTS), "upto": "sealed"}
    return exact_plan(**given, predictions=[], edit=edit)


def alone(edit: Callable[[str, Any], Any]) -> Plan:
    """One in which `deep`, which is walked alone, is what is registered."""
    return walked(edit, laws={"deep": HALF_D}, alpha=None)


GOOD: dict[str, Plan] = {
    "as it is": planned(),
    "nothing registered": planned(laws={}),
    "no records": planned(records={}),
    "records without a reference": planned(records={"probe": PLAN | {"reference": "none"}}),
    "a crash in the law": planned(laws={"probe": law((A, 0.5), (CRASH, 0.5))}),
    "a law within 1e-9 of 1": planned(laws={"probe": law((A, 0.5), (D, 0.5 - 9e-10))}),
    "an outcome of no event, and of p = 0": planned(
        laws={"probe": [*HALF_D, *law(({"tokens": [3], "finish": None}, 0))]}
    ),
    "a law that gives nothing more than P": planned(laws={"probe": law((A, 0.5), (B, 0.25), (C, 0.25))}),
    "two registered": planned(laws={"probe": HALF_D, "control": HALF_D}),
    "the switch at its limit": change(
        "events.json", put("configurations", "probe", "hypothesis", "switch", to=1e-12), make=planned
    ),
    "registered in the exact stage alone": walked(laws={"deep": HALF_D}, alpha=None),
    "rows by build": planned(build_of={"probe": "b-2"}, builds={("on", "b-2"): (2, 5)}),
}


def changed(name: str, edit: Edit, **options: Any) -> Plan:
    return change(f"{name}.json", edit, make=planned, **options)


def _no(*configurations: str) -> dict[str, Json]:
    return {c: PLAN for c in ("control", "probe") if c not in configurations}


def _first_edition(protocol: Json) -> None:
    del protocol["edition"]


def _only(part: str) -> Edit:
    """Edition 1 with one member of edition 2: every other one is taken out of the protocol."""

    def edit(protocol: Json) -> None:
        _first_edition(protocol)
        if part != "hypotheses":
            protocol.pop("hypotheses", None)
        for c in protocol["configurations"]:
            if part != "records":
                c.pop("records", None)

    return edit


SET = ("configurations", "probe", "events", len(SECOND_EVENTS))
LAW = ("configurations", "probe", "hypothesis")
PROBE = "events.json#/configurations/probe"
CONTROL = "events.json#/configurations/control"
RECORDS = ("configurations", "probe", "records")
TWICE = {"configuration": "probe", "hypothesis": HYPOTHESIS, "cause": "x", "priority": 1}
GAP = {"rule": "event-gap", "threshold": 0.01, "calibration_allowance": None}


def _claim(channel: str, configuration: str, *verdicts: str) -> Edit:
    claim = {"kind": "verdict", "configuration": configuration, "in": [*verdicts], "channel": channel}
    return put("predictions", 0, "claim", to=claim)


BAD: dict[str, tuple[Plan, str]] = {
    # Editions.
    "an edition that is none": (changed("protocol", put("edition", to=4)), "protocol.json#/edition"),
    "records in edition 1": (
        changed("protocol", _only("records"), laws={}), "protocol.json#/configurations/0/records: is of",
    ),
    "hypotheses in edition 1": (
        changed("protocol", _only("hypotheses"), records={}), "protocol.json#/hypotheses: is of edition 2",
    ),
    "a law in edition 1": (
        changed("protocol", _only("none"), records={}), f"{PROBE}/hypothesis: is of edition 2",
    ),
    "a table in edition 1": (
        changed("protocol", _only("none"), laws={}), f"{PROBE}/records: is of edition 2",
    ),
    "rows by build in edition 1": (
        changed("protocol", _first_edition, records={}, laws={}, builds={("on", "b-1"): (2, 5)}),
        "protocol.json#/sampling/on/builds: is of edition 2",
    ),
    "a claim on records in edition 1": (
        change("predictions.json", _claim("records", "probe", "FAILS"), upto="sealed"),
        "predictions.json#/predictions/0/claim/channel: is of edition 2",
    ),
    "signers in edition 1": (
        change("protocol.json", put("signers", to={"need": 1, "principals": ["ann@example.org"]}),
               upto="sealed"),
        "protocol.json#/signers: is of edition 2",
    ),
    # Rows by build.
    "rows of a build that none has": (
        planned(builds={("on", "b-9"): (2, 5)}), "protocol.json#/sampling/on/builds/b-9: no configuration",
    ),
    "rows that do not divide the draws": (
        planned(builds={("off", "b-1"): (3, 5)}), "/sampling/off/builds/b-1/rows: draws is not a multiple",
    ),
    "seeds for other rows": (
        changed("seeds", put("blocks", 3, "end", to="1040"), build_of={"probe": "b-2"},
                builds={("on", "b-2"): (2, 5)}),
        "main.probe.on has 10 seeds for 20 requests",
    ),
    # Records.
    "records of a command": (
        changed("protocol", lambda v: v["configurations"][0].update(adapter="command", command=["x"])),
        "protocol.json#/configurations/0/records: a command has no records",
    ),
    "records of what is walked alone": (
        walked(records={"deep": PLAN}), "protocol.json#/configurations/2/records: is for configurations",
    ),
    "records without a horizon": (
        changed("protocol", put("configurations", 1, "horizon", to=None)), "/configurations/1/horizon",
    ),
    "no table": (changed("events", drop(*RECORDS)), f"{PROBE}/records: is there exactly"),
    "a table without records": (
        changed("protocol", drop("configurations", 1, "records")), f"{PROBE}/records: is there exactly",
    ),
    "a table where no reference is named": (
        changed("protocol", put("configurations", 1, "records", "reference", to="none")),
        f"{PROBE}/records: is there exactly",
    ),
    "no empty prefix": (changed("events", drop(*RECORDS, 0)), f"{PROBE}/records: has no empty prefix"),
    "a prefix twice": (
        changed("events", put(*RECORDS, 2, "prefix", to=[1])), f"{PROBE}/records/2/prefix: a prefix that is",
    ),
    "an entry with too few values": (
        planned(table=TABLE | {(1,): entry(-1)}), f"{CONTROL}/records/1/entry: has 1 values, and `told` is 2",
    ),
    "an entry of two lengths": (
        planned(table=TABLE | {(1,): {"tokens": [0, 1], "values": [0, 1, 2]}}),
        f"{CONTROL}/records/1/entry: 2 tokens and 3 values",
    ),
    "an entry out of order": (
        planned(table=TABLE | {(1,): entry(0, 1, tokens=[1, 0])}),
        f"{CONTROL}/records/1/entry: tokens are not ascending",
    ),
    "records by another rule": (
        changed("protocol", put("decision", to=GAP)), "/configurations/1/records: event-gap has no records",
    ),
    # Hypotheses.
    "a hypothesis by another rule": (
        changed("protocol", put("decision", to=GAP), records={}), "event-gap has no hypothesis",
    ),
    "hypotheses of another study": (
        changed("hypotheses", put("study", to="other")), "hypotheses.json#/study",
    ),
    "hypotheses of no schema": (changed("hypotheses", put("more", to=1)), "hypotheses.json#/more"),
    "two hypotheses of one id": (
        changed("hypotheses", lambda v: v["hypotheses"].append(v["hypotheses"][0])),
        "hypotheses.json#/hypotheses: 'H-D1-far' is there twice",
    ),
    "registered twice": (
        changed("hypotheses", lambda v: v["configurations"].append(TWICE)),
        "hypotheses.json#/configurations: 'probe' is there twice",
    ),
    "a hypothesis that is none": (
        changed("hypotheses", put("configurations", 0, "hypothesis", to="H-9")),
        "hypotheses.json#/configurations/0/hypothesis: 'H-9' is not among the hypotheses",
    ),
    "registered, and no configuration": (
        changed("hypotheses", put("configurations", 0, "configuration", to="no")),
        "hypotheses.json#/configurations/0/configuration: 'no' is not a configuration",
    ),
    "registered without a drafter": (
        changed("protocol", put("configurations", 1, "drafter", to=None)), "'probe' has no drafter",
    ),
    "registered without a reference": (
        change("events.json", put("configurations", "deep", "reference", to=None),
               make=alone),
        "'deep' has no reference",
    ),
    "no plan of hypotheses": (
        changed("protocol", drop("hypotheses")), "protocol.json#/hypotheses: is there exactly",
    ),
    "a plan without hypotheses": (
        changed("protocol", put("hypotheses", to={"alpha": 0.05, "allowance": 0}), laws={}),
        "protocol.json#/hypotheses: is there exactly",
    ),
    "a file that registers nothing": (
        changed("hypotheses", put("configurations", to=[])), "protocol.json#/hypotheses: is there exactly",
    ),
    "no alpha, with draws": (planned(alpha=None), "protocol.json#/hypotheses/alpha: is null exactly"),
    "an alpha, without draws": (walked(laws={"deep": HALF_D}), "/hypotheses/alpha: is null exactly"),
    "no law": (
        changed("events", drop("configurations", "probe", "hypothesis")),
        f"{PROBE}/hypothesis: is there exactly",
    ),
    "a law of what is not registered": (
        changed("events", lambda v: v["configurations"]["control"].update(
            hypothesis={"id": HYPOTHESIS, "switch": 0, "law": HALF_D})),
        f"{CONTROL}/hypothesis: is there exactly",
    ),
    "a law of another hypothesis": (
        changed("events", put(*LAW, "id", to="other")),
        f"{PROBE}/hypothesis/id: is not the registered 'H-D1-far'",
    ),
    "a switch that does not switch": (
        changed("events", put(*LAW, "switch", to=1.1e-12)), f"{PROBE}/hypothesis/switch: is more than",
    ),
    "a law with an outcome twice": (
        planned(laws={"probe": law((A, 0.25), (A, 0.25), (D, 0.5))}), f"{PROBE}/hypothesis/law: ",
    ),
    "a law that is too small": (
        planned(laws={"probe": law((A, 0.5), (D, 0.5 - 2e-9))}), "its probabilities sum to 0.999999998",
    ),
    "a law that is too great": (
        planned(laws={"probe": law((A, 0.5), (D, 0.5 + 2e-9))}), "its probabilities sum to 1.000000002",
    ),
    "an outcome without an event": (
        changed("events", drop("configurations", "probe", "events", 3)),
        f"{PROBE}/hypothesis/law/1/outcome: has no `outcome` event",
    ),
    # A_H.
    "no event of the hypothesis": (
        changed("events", drop(*SET)), f"{PROBE}/events: has 0 events of the hypothesis; A_H has 1 outcomes",
    ),
    "two events of it": (
        changed("events", lambda v: v["configurations"]["probe"]["events"].append(
            {"id": "again", "kind": "set", "outcomes": [D], "hypothesis": HYPOTHESIS})),
        f"{PROBE}/events: has 2 events of the hypothesis",
    ),
    "an event of an empty A_H": (
        changed("events", lambda v: v["configurations"]["probe"]["events"].append(
            {"id": "hyp", "kind": "set", "outcomes": [], "hypothesis": HYPOTHESIS}),
            laws={"probe": law((A, 0.5), (B, 0.25), (C, 0.25))}),
        f"{PROBE}/events: has 1 events of the hypothesis; A_H has 0 outcomes",
    ),
    "an event of more": (
        changed("events", put(*SET, "outcomes", to=[D, A])), "outcomes: is not exactly A_H",
    ),
    "an event of another outcome": (
        changed("events", put(*SET, "outcomes", to=[A])), "outcomes: is not exactly A_H",
    ),
    "an event of another hypothesis": (
        changed("events", put(*SET, "hypothesis", to="h-1")), "hypothesis: 'h-1' is not registered",
    ),
    "an event where nothing is registered": (
        changed("events", lambda v: v["configurations"]["control"]["events"].append(
            {"id": "hyp", "kind": "set", "outcomes": [D], "hypothesis": HYPOTHESIS})),
        f"{CONTROL}/events/7/hypothesis: 'H-D1-far' is not registered",
    ),
    # Claims.
    "a claim on records of what has none": (
        changed("predictions", _claim("records", "probe", "FAILS"), records=_no("probe")),
        "predictions.json#/predictions/0/claim: 'probe' is not a configuration of a stage of draws with",
    ),
    "a claim on a hypothesis of what has none": (
        changed("predictions", _claim("hypothesis", "control", "VOID")), "'control' is not a configuration",
    ),
    "a claim on a hypothesis of what is walked alone": (
        change("predictions.json", lambda v: v["predictions"].append(
            {"id": "p", "statement": "x", "claim": {
                "kind": "count", "configurations": ["deep"], "verdict": "VOID", "at_most": 0,
                "channel": "hypothesis"}}),
            make=alone),
        "'deep' is not a configuration of a stage of draws with hypothesis",
    ),
    "a verdict of draws of records": (
        changed("predictions", _claim("records", "probe", "DIFFERS")), "'DIFFERS' is no verdict of the rule",
    ),
    "a verdict of draws of a hypothesis": (
        changed("predictions", _claim("hypothesis", "probe", "FAILS")), "'FAILS' is no verdict of the rule",
    ),
    "a status of a hypothesis of draws": (
        changed("predictions", put("predictions", 0, "claim", "in", to=["COMPATIBLE"])),
        "'COMPATIBLE' is no verdict of the rule channel-S",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_a_plan_that_holds_together(tmp_path: Path, keys: Path, name: str) -> None:
    outcome = look(Builder(tmp_path / "r", keys, GOOD[name]).build())
    assert failed(outcome) == {}
    assert outcome.status(5) == "ok"


@pytest.mark.parametrize("name", BAD)
def test_a_plan_that_does_not(tmp_path: Path, keys: Path, name: str) -> None:
    plan, says = BAD[name]
    outcome = look(Builder(tmp_path / "r", keys, plan).build())
    assert outcome.result == "FAILED"
    assert says in failed(outcome)[5]


def test_hypotheses_are_just_a_file_in_edition_1(tmp_path: Path, keys: Path) -> None:
    class More(Builder):
        def write(self, path: str, data: bytes) -> bytes:
            if path == "NOTES.md":
                super().write("hypotheses.json", b"not JSON")
            return super().write(path, data)

    assert failed(look(More(tmp_path / "r", keys, Plan(upto="sealed")).build())) == {}
    plan = planned(laws={})
    assert "hypotheses.json" in failed(look(More(tmp_path / "s", keys, plan).build()))[5]


def without(code: Path) -> None:
    (code / "schemas" / "v1" / "hypotheses.schema.json").unlink()


def test_the_schema_of_hypotheses_is_missed_in_edition_2_alone(
    tmp_path: Path, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "audits").mkdir()
    monkeypatch.setattr(rules, "FILE", Path(shutil.copy(rules.FILE, tmp_path / "audits")))
    plan = change("code", without, upto="sealed")
    assert failed(look(Builder(tmp_path / "one", keys, plan).build())) == {}
    plan = change("code", without, make=planned, laws={})
    found = failed(look(Builder(tmp_path / "two", keys, plan).build()))
    assert "code/schemas/v1/hypotheses.schema.json: missing" in found[5]


def test_units_have_the_rows_of_their_build(tmp_path: Path, keys: Path) -> None:
    # Of 40 draws `probe.on` makes 20 requests of 2, in shards of 5: 4; the others 10 of 4, by 4: 3 each.
    second = Second(build_of={"probe": "b-2"}, builds={("on", "b-2"): (2, 5)})
    builder = Builder(tmp_path / "r", keys, second_plan(second=second))
    study = builder.build()
    assert look(study).result == "AGREES"
    shards = {unit.name: len([*unit.glob("*.gz")]) for unit in (study / "records").iterdir()}
    assert shards == {
        "main.probe.on": 4, "main.probe.off": 3, "main.control.on": 3, "main.control.off": 3,
    }  # fmt: skip
