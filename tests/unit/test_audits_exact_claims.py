"""What a study claims of its exact stage against what follows from its leaves."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from audits_fixture import Builder
from audits_kit import change, drop, failed, look, make_keys, put, resumed
from audits_laws import schema
from audits_plan import exact_plan
from audits_slow import Json

from audits.derive import compare_decisions
from audits.fault import Found
from audits.load import Folder
from audits.report import Outcome
from audits.run import Audit, Options


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_keys(tmp_path_factory.mktemp("audit-keys"))


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Builder:
    """A study that was collected, to be analysed in copies."""
    builder = Builder(tmp_path_factory.mktemp("exact") / "r", keys, exact_plan(upto="collected"))
    builder.build()
    return builder


Edit = Callable[[Any], Any]


def row(name: str, *path: Any, to: Any) -> Edit:
    """Set a value of a configuration of the exact stage: 0 deep, 1 probe, 2 control."""
    number = ["deep", "probe", "control"].index(name)
    return put("exact", "configurations", number, *path, to=to)


def nudged(name: str, key: str, by: float) -> Edit:
    def edit(value: Json) -> None:
        number = ["deep", "probe", "control"].index(name)
        value["exact"]["configurations"][number][key] += by

    return edit


def opposite(value: Json) -> None:
    equal = value["exact"]["configurations"][2]
    value["exact"]["configurations"][1].update(
        {key: equal[key] for key in equal if key not in ("id", "masses", "oracle")}
    )


TREE = ("premise", "configurations", 0)
CLAIMS: dict[str, tuple[Edit, str]] = {
    "the opposite": (opposite, "exact probe /tv_upper: claimed 0,"),
    "a verdict": (row("control", "verdict", to="INCONCLUSIVE"), "exact control /verdict"),
    "a reason left out": (row("probe", "reasons", to=["witness"]), "exact probe /reasons"),
    "reasons reordered": (
        row("probe", "reasons", to=["witness", "total-variation"]), "exact probe /reasons/0",
    ),
    "a total variation": (nudged("probe", "tv_lower", 1e-9), "exact probe /tv_lower"),
    "its upper end": (nudged("deep", "tv_upper", -1e-9), "exact deep /tv_upper"),
    "D": (nudged("probe", "D", 1e-9), "exact probe /D"),
    "the event of D": (row("probe", "D_event", to="two"), "exact probe /D_event"),
    "a witness dropped": (
        drop("exact", "configurations", 1, "witnesses", 1), "exact probe /witnesses",
    ),
    "a witness's mass": (row("probe", "witnesses", 0, "p", to=0.1), "exact probe /witnesses/0/p"),
    "the witness mass": (nudged("probe", "witness_mass", 1e-9), "exact probe /witness_mass"),
    "what is unexplored": (row("deep", "unexplored", "off", to=0), "exact deep /unexplored/off"),
    "runs": (row("deep", "runs", "on", to=6), "exact deep /runs/on"),
    "leaves": (row("deep", "leaves", "on", to=6), "exact deep /leaves/on"),
    "outcomes": (row("deep", "outcomes", "on", to=5), "exact deep /outcomes/on"),
    "proposals": (row("deep", "proposals", to=11), "exact deep /proposals"),
    "crashes": (row("deep", "crash_mass", "on", to=1e-9), "exact deep /crash_mass/on"),
    "the oracle": (row("control", "oracle", "largest", to=1e-9), "exact control /oracle/largest"),
    "no oracle": (row("control", "oracle", to=None), "exact control /oracle"),
    "a mass": (row("control", "masses", 2, "on", to=0.2), "exact control /masses/2/on"),
    "a mass left out": (
        drop("exact", "configurations", 2, "masses", 9), "exact control /masses",
    ),
    "the tolerance": (put("exact", "tolerance", to=1e-8), "/exact/tolerance"),
    "a configuration left out": (drop("exact", "configurations", 1), "exact probe not claimed"),
    "configurations in another order": (
        lambda v: v["exact"]["configurations"].reverse(), "/exact/configurations/0",
    ),
    "no exact stage": (drop("exact"), "/exact: not claimed"),
    "no premise": (put("exact", "premise", to=None), "/exact/premise"),
    "a premise left out": (drop("exact", *TREE), "premise probe not claimed"),
    "a premise's status": (put("exact", *TREE, "status", to="FAILS"), "premise probe /status"),
    "a premise's reasons": (put("exact", *TREE, "reasons", to=["bound"]), "premise probe /reasons/0"),
    "a premise's level": (put("exact", *TREE, "level", to=0.05), "premise probe /level"),
    "a premise's draws": (put("exact", *TREE, "on", "draws", to=39), "premise probe /on/draws"),
    "a premise's outside": (put("exact", *TREE, "on", "outside", to=1), "premise probe /on/outside"),
    "a premise's excess": (put("exact", *TREE, "on", "excess", to=1e-9), "premise probe /on/excess"),
    "a premise's event": (put("exact", *TREE, "on", "event", to="none"), "premise probe /on/event"),
    "the premise's m": (put("exact", "premise", "m", to=1), "/exact/premise/m"),
    "the premise's alpha": (put("exact", "premise", "alpha", to=0.1), "/exact/premise/alpha"),
    "m of the draws": (put("m", to=3), "/m"),
    "what is only walked, drawn": (
        lambda v: v["configurations"].append(v["configurations"][0] | {"id": "deep"}), "/configurations",
    ),
    "an exact prediction": (
        put("predictions", 0, "status", to="FAILED"), "prediction departs: claimed FAILED, derived HELD",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def audited(collected: Builder, tmp_path_factory: pytest.TempPathFactory) -> Audit:
    """An audit of the study, analysed as it should be."""
    builder = resumed(collected, tmp_path_factory.mktemp("audited") / "r", exact_plan())
    builder.analyse()
    folder = Folder(builder.folder)
    trust = builder.root / "trust"
    done = Audit(
        Options(
            study=builder.folder, signers=trust / "allowed_signers", roles=trust / "roles.json",
            studies=builder.folder.parent,
        ),
        folder,
    )  # fmt: skip
    assert done.run().result == "AGREES"
    folder.close()
    return done


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_that_does_not_follow_is_named(audited: Audit, name: str) -> None:
    """Step 13 alone, on decisions that are still of the schema."""
    edit, says = CLAIMS[name]
    claimed = copy.deepcopy(audited._decisions)
    edit(claimed)
    assert schema("decisions").first_wrong(claimed) is None
    outcome, found = Outcome("tiny"), Found()
    study, derived, predicted = audited._study, audited._derived, audited._predicted
    assert study is not None
    compare_decisions(study, claimed, audited.outcome.seal, derived, predicted, outcome, found)
    assert says in "; ".join(str(fault) for fault in found.faults)
    value = audited.outcome.value()
    assert [row["id"] for row in outcome.exact or ()] == [row["id"] for row in value["exact"]]


@pytest.mark.parametrize(
    "name", ["the opposite", "a total variation", "a witness dropped", "reasons reordered", "no exact stage"]
)
def test_a_claim_that_does_not_follow_disagrees(tmp_path: Path, collected: Builder, name: str) -> None:
    edit, says = CLAIMS[name]
    builder = resumed(collected, tmp_path / "r", change("decisions", edit, make=exact_plan))
    builder.analyse()
    outcome = look(builder.folder)
    found = failed(outcome)
    assert list(found) == [13], found
    assert says in found[13], found
    assert outcome.result == "DISAGREES"
    said = {row["id"]: row for row in outcome.value()["exact"]}
    wrong = {"probe"} if name != "no exact stage" else {"deep", "probe", "control"}
    assert {name for name, row in said.items() if not row["agrees"]} == wrong


def test_claims_within_the_tolerance_agree(tmp_path: Path, collected: Builder) -> None:
    plan = change("decisions", nudged("probe", "tv_lower", 5e-11), make=exact_plan)
    builder = resumed(collected, tmp_path / "r", plan)
    builder.analyse()
    assert look(builder.folder).result == "AGREES"


def test_an_exact_claim_without_an_exact_stage(tmp_path: Path, keys: Path, collected: Builder) -> None:
    claim = json.loads(json.dumps(collected.exact()))
    plan = change("decisions", put("exact", to=claim))
    found = failed(look(Builder(tmp_path / "r", keys, plan).build()))
    assert list(found) == [13] and "/exact: claimed, but not derived" in found[13]
