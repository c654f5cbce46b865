"""Whole studies with an exact stage: what follows from them, and records that do not hold together."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from audits_fixture import Builder
from audits_kit import Copy, change, drop, failed, look, make_keys, put
from audits_plan import Plan, exact_plan, only_exact
from audits_slow import A, B, C
from audits_trees import STRANGE, bent, default_trees, failing, off, on

from audits.report import text


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_keys(tmp_path_factory.mktemp("audit-keys"))


def test_the_study_agrees(tmp_path: Path, keys: Path) -> None:
    outcome = look(Builder(tmp_path / "r", keys, exact_plan()).build())
    assert failed(outcome) == {}
    assert outcome.result == "AGREES"
    value = outcome.value()
    assert [(row["id"], row["verdict"], row["agrees"]) for row in value["exact"]] == [
        ("deep", "INCONCLUSIVE", True),
        ("probe", "DEPARTS", True),
        ("control", "EQUAL_WITHIN_TOLERANCE", True),
    ]
    assert [(row["id"], row["status"]) for row in value["premise"]] == [
        ("probe", "NOT_REJECTED"),
        ("control", "NOT_REJECTED"),
    ]
    assert [row["id"] for row in value["configurations"]] == ["control", "probe"]
    assert [row["status"] for row in value["predictions"]] == ["HELD"] * 3
    assert outcome.steps[7].applied == 2 * 2 * 40 + (2 + 5) + (3 + 5) + (3 + 5)
    shown = text(value, [])
    assert "premise  derived" in shown and "EQUAL_WITHIN_TOLERANCE" in shown


def test_a_study_that_is_exact_alone(tmp_path: Path, keys: Path) -> None:
    outcome = look(Builder(tmp_path / "r", keys, only_exact()).build())
    assert failed(outcome) == {}
    assert (outcome.result, outcome.configurations) == ("AGREES", [])
    value = outcome.value()
    assert [row["verdict"] for row in value["exact"]] == ["EQUAL_WITHIN_TOLERANCE", "DEPARTS"]
    assert "premise" not in value


def test_a_study_without_an_exact_stage_reports_none(tmp_path: Path, keys: Path) -> None:
    value = look(Builder(tmp_path / "r", keys, Plan(upto="sealed")).build()).value()
    assert not {"exact", "premise"} & value.keys()


VERDICTS: dict[str, tuple[Plan, list[str], list[str], str]] = {
    "a tree lost": (
        exact_plan(invalid=("walk.probe.on",)),
        ["INCONCLUSIVE", "INVALID", "EQUAL_WITHIN_TOLERANCE"], ["INVALID", "NOT_REJECTED"], "NOT_DETERMINED",
    ),
    "draws lost": (
        exact_plan(invalid=("main.control.off",)),
        ["INCONCLUSIVE", "DEPARTS", "EQUAL_WITHIN_TOLERANCE"], ["NOT_REJECTED", "INVALID"], "HELD",
    ),
    "a tree missing, bounded": (
        exact_plan(left_out=("walk.probe.off",), missing="bound"),
        ["INCONCLUSIVE", "INVALID", "EQUAL_WITHIN_TOLERANCE"], ["INVALID", "NOT_REJECTED"], "NOT_DETERMINED",
    ),
    "a void tree": (
        exact_plan(trees=lambda c, arm: off(**failing("walk")) if (c, arm) == ("probe", "off")
                   else default_trees(c, arm)),
        ["INCONCLUSIVE", "VOID", "EQUAL_WITHIN_TOLERANCE"], ["NOT_TESTED", "NOT_REJECTED"], "FAILED",
    ),
    "no tree": (
        exact_plan(trees=lambda c, arm: on(branches=bent(1, 0, 0.4)) if (c, arm) == ("probe", "on")
                   else default_trees(c, arm)),
        ["INCONCLUSIVE", "VOID", "EQUAL_WITHIN_TOLERANCE"], ["NOT_TESTED", "NOT_REJECTED"], "FAILED",
    ),
    "a draw outside its tree": (
        exact_plan(on=lambda c, j: STRANGE if (c, j) == ("control", 7) else [A, B, A, C][j % 4]),
        ["INCONCLUSIVE", "DEPARTS", "EQUAL_WITHIN_TOLERANCE"], ["NOT_REJECTED", "FAILS"], "HELD",
    ),
    "one premise": (
        exact_plan(exact=("deep", "probe"), predictions=[{
            "id": "p", "statement": "x",
            "claim": {"kind": "verdict", "configuration": "probe", "in": ["DEPARTS"], "channel": "exact"},
        }]),
        ["INCONCLUSIVE", "DEPARTS"], ["NOT_REJECTED"], "HELD",
    ),
    "no premise": (
        exact_plan(premise_alpha=None), ["INCONCLUSIVE", "DEPARTS", "EQUAL_WITHIN_TOLERANCE"], [], "HELD",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts_of_whole_studies(tmp_path: Path, keys: Path, name: str) -> None:
    plan, verdicts, statuses, departs = VERDICTS[name]
    outcome = look(Builder(tmp_path / "r", keys, plan).build())
    assert failed(outcome) == {}
    value = outcome.value()
    assert [row["verdict"] for row in value["exact"]] == verdicts
    assert [row["status"] for row in value.get("premise", ())] == statuses
    assert outcome.predictions[0]["status"] == departs
    assert outcome.result == "AGREES"
    assert ("premise" in value) == (plan.premise_alpha is not None)


def test_events_without_an_oracle_may_be_walked_too(tmp_path: Path, keys: Path) -> None:
    """The rule of the draws is event-gap: no reference, no predicate, and so no witness."""
    plan = exact_plan(
        rule="event-gap", law=None, allowance=None, predictions=None, configurations=("probe",),
        exact=("probe",), undrawn=(), upto="sealed",
        edit=lambda name, value: value | {"configurations": [
            c | {"drafter": {"kind": "prompt-lookup", "max_ngram": 2, "max_tokens": 2}}
            for c in value["configurations"]
        ]} if name == "protocol.json" else value | {"predictions": []} if name == "predictions.json"
        else value,
    )  # fmt: skip
    assert failed(look(Builder(tmp_path / "r", keys, plan).build())) == {}


Edit = Callable[[Any], Any]


def leaf_of(unit: str, number: int) -> Callable[[Any], bool]:
    return lambda leaf: bool(leaf["unit"] == unit and leaf["leaf"] == number)


def of_unit(unit: str) -> Callable[[Any], bool]:
    return lambda value: bool(value["unit"] == unit)


UNIT = "walk.probe.on"
LINES, META = f"records/{UNIT}/00000.jsonl.gz", f"records/{UNIT}/00000.meta.json"


def held(name: str, edit: Edit, when: Callable[[Any], bool] | None = None) -> Plan:
    return change(name, edit, when or of_unit(UNIT), make=exact_plan, upto="collected")


RECORDS: dict[str, tuple[Plan, str]] = {
    "a leaf twice": (
        change("lines", lambda d: d.replace(b"\n", b"\n" + d[: d.index(b"\n") + 1], 1),
               lambda d: b'"unit":"walk.probe.on"' in d, make=exact_plan, upto="collected"),
        f"{META}#/draws: is 5; there are 6 leaves",
    ),
    "choices out of order": (
        held("leaf", put("choices", 0, to=0), leaf_of(UNIT, 2)), f"{LINES} line 3#/choices: out of order",
    ),
    "a leaf's number": (held("leaf", put("leaf", to=7), leaf_of(UNIT, 2)), f"{LINES} line 3#/leaf"),
    "a leaf's seal": (held("leaf", put("seal", to="0" * 64), leaf_of(UNIT, 2)), f"{LINES} line 3#/seal"),
    "a check that is well and differs": (
        held("tree", put("admission", "replay", "differences", to=1)), f"{META}#/tree/admission/replay/ok",
    ),
    "no tree in the meta": (held("meta", drop("tree")), f"{META}#/tree"),
    "a tree in the meta of draws": (
        change("meta", put("tree", to=off()["meta"]), of_unit("main.probe.on"), make=exact_plan,
               upto="collected"),
        "records/main.probe.on/00000.meta.json#/tree",
    ),
    "other requests": (held("meta", put("requests", to=5)), f"{META}#/requests"),
    "other rows": (held("meta", put("rows", to=4)), f"{META}#/rows"),
    "another first seed": (held("meta", put("first_seed", to="1")), f"{META}#/first_seed"),
    "no leaf at all": (
        exact_plan(upto="collected", trees=lambda c, arm: on(branches=[]) if (c, arm) == ("probe", "on")
                   else default_trees(c, arm)),
        f"{META}#/draws: less than 1",
    ),
    "draws in the ledger": (
        held("shard-stored body", put("draws", to=4)), f"{META}#/draws: has 5 draws, the ledger 4",
    ),
    "a second shard": (
        held("shard-stored body", put("shard", to=1)), f"records/{UNIT}/00001: stored, but not in the plan",
    ),
    "a tree that was never collected": (
        change("collection-ended body", put("complete", to=True), make=exact_plan, upto="collected",
               left_out=(UNIT,)),
        f"the collection is complete without shard 00000 of {UNIT}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RECORDS)
def test_records_of_a_tree_that_do_not_hold_together(tmp_path: Path, keys: Path, name: str) -> None:
    plan, says = RECORDS[name]
    outcome = look(Builder(tmp_path / "r", keys, plan).build())
    assert outcome.result == "FAILED"
    assert says in failed(outcome)[7], failed(outcome)


@pytest.mark.parametrize("path", [LINES, META, f"records/{UNIT}"])
def test_removing_a_tree_passes_nothing(tmp_path: Path, keys: Path, path: str) -> None:
    copy = Copy(tmp_path / "r", keys)
    Builder(copy.root, keys, exact_plan()).build()
    copy.drop(path)
    outcome = look(copy.study)
    assert outcome.result == "FAILED"
    assert 7 in failed(outcome)
    assert [row["id"] for row in outcome.value()["exact"]] == ["deep", "control"]
    assert outcome.status(11) == outcome.status(12) == "not-checked"


def test_trees_of_two_studies_share_no_seeds(tmp_path: Path, keys: Path) -> None:
    first = Builder(tmp_path / "r", keys, only_exact()).build()
    Builder(tmp_path / "r", keys, only_exact(study="second", first_seed=1015)).build()
    found = failed(look(first))
    assert list(found) == [10]
    assert "used by walk.probe.on of second" not in found[10]
    assert "used by walk.control.off of second share [1015, 1016) at 64 bits" in found[10]
    third = Builder(tmp_path / "s", keys, only_exact()).build()
    other = Builder(tmp_path / "s", keys, only_exact(study="second", first_seed=2000)).build()
    assert look(third).result == "AGREES"
    blocks = json.loads((other / "seeds.json").read_bytes())
    blocks["blocks"].pop()
    (other / "seeds.json").write_text(json.dumps(blocks))
    found = failed(look(third))
    assert "second/records/walk.probe.on/00000.jsonl.gz: holds leaves of walk.probe.on" in found[10]
