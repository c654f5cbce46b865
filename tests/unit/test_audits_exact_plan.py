"""What a study with an exact stage may plan, and by which schemas."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from audits_fixture import Builder
from audits_kit import change, drop, failed, look, make_keys, put
from audits_plan import Plan, exact_plan, only_exact
from audits_slow import Json
from audits_tools import ROOT

from audits import rules


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_keys(tmp_path_factory.mktemp("audit-keys"))


Edit = Callable[[Any], Any]


def planned(edit: Edit, **options: Any) -> Plan:
    return change("protocol.json", edit, make=exact_plan, upto="sealed", **options)


def alone(edit: Edit, **options: Any) -> Plan:
    return change("protocol.json", edit, make=only_exact, upto="sealed", **options)


def claimed(edit: Edit) -> Plan:
    return change("predictions.json", edit, make=exact_plan, upto="sealed")


def another(stage: Json) -> Edit:
    def edit(protocol: Json) -> None:
        protocol["stages"].append({"purpose": "control"} | stage)

    return edit


ASSISTANT = {"kind": "assistant", "model": "m", "max_tokens": 2}
CLAIM = "predictions.json#/predictions/{}/claim"
PLANS: dict[str, tuple[Plan, str]] = {
    "two exact stages": (
        planned(another({"id": "two", "channel": "exact", "configurations": ["control"]})),
        "protocol.json#/stages: has 2 exact stages",
    ),
    "drawn in two stages": (
        planned(another({"id": "two", "configurations": ["control"]})),
        "protocol.json#/stages/2/configurations/0: 'control' is in a second stage of channel draws",
    ),
    "two stages of one name": (
        planned(another({"id": "main", "configurations": ["deep"]})), "protocol.json#/stages: 'main'",
    ),
    "a configuration in no stage": (
        planned(put("stages", 1, "configurations", to=["probe", "control"])), "'deep' is in no stage",
    ),
    "a stage of what is not there": (
        planned(put("stages", 1, "configurations", 0, to="no")), "protocol.json#/stages/1/configurations/0",
    ),
    "a channel of no name": (planned(put("stages", 1, "channel", to="other")), "/stages/1/channel"),
    "no tolerance": (planned(drop("exact")), "protocol.json#/exact: is there exactly when"),
    "a tolerance without a stage": (
        change("protocol.json", put("exact", to={
            "tolerance": 0.1, "runs": None, "mass": 0, "close_last": True, "close_floor": 0,
            "premise_alpha": None,
        }), upto="sealed"),
        "protocol.json#/exact: is there exactly when",
    ),
    "a command in the exact stage": (
        planned(lambda v: v["configurations"][2].update(adapter="command", command=["x"])),
        "protocol.json#/stages/1/configurations/0: an exact stage has no configuration of adapter `command`",
    ),
    "nothing that proposes in the exact stage": (
        planned(put("configurations", 2, "drafter", to=None)),
        "protocol.json#/stages/1/configurations/0: an exact stage has no configuration without a drafter",
    ),
    "an assistant that is no model": (
        planned(put("configurations", 0, "drafter", to=ASSISTANT)),
        "protocol.json#/configurations/0/drafter/model",
    ),
    "a premise that nothing can test": (
        alone(lambda v: None, premise_alpha=0.05), "protocol.json#/exact/premise_alpha",
    ),
    "draws planned where nothing is drawn": (
        alone(put("sampling", to={"on": {"draws": 4, "rows": 1, "shard_requests": 4}})), "/sampling",
    ),
    "another rule where nothing is drawn": (
        alone(put("decision", to={"rule": "channel-S", "threshold": 0, "calibration_allowance": 0.1})),
        "protocol.json#/decision",
    ),
    "a threshold where nothing is drawn": (alone(put("decision", "threshold", to=0.1)), "json#/decision"),
    "the exact rule where something is drawn": (
        planned(put("decision", to={"rule": "exact", "threshold": 0, "calibration_allowance": None})),
        "protocol.json#/decision/rule",
    ),
    "five seeds for a tree": (
        change("seeds.json", put("blocks", 9, "end", to="1065"), make=exact_plan, upto="sealed"),
        "walk.control.on has 5 seeds for 4 requests",
    ),
    "no seeds for a tree": (
        change("seeds.json", drop("blocks", 4), make=exact_plan, upto="sealed"),
        "walk.deep.off has no block",
    ),
    "an exact claim of what is not walked": (
        change("predictions.json", put("predictions", 0, "claim", "configuration", to="probe"),
               make=exact_plan, upto="sealed", exact=("deep", "control")), CLAIM.format(0),
    ),
    "a claim on draws of what is not drawn": (
        claimed(put("predictions", 1, "claim", "configuration", to="deep")), CLAIM.format(1),
    ),
    "a claim without a channel of what is not drawn": (
        claimed(put("predictions", 2, "claim", to={
            "kind": "count", "configurations": ["deep", "control"], "verdict": "FAILS", "at_most": 0,
        })), CLAIM.format(2),
    ),
    "an exact verdict of draws": (
        claimed(put("predictions", 1, "claim", "in", to=["DEPARTS"])), "'DEPARTS' is no verdict of the rule",
    ),
    "a verdict of draws of the exact stage": (
        claimed(put("predictions", 2, "claim", "verdict", to="NOT_REJECTED")), CLAIM.format(2),
    ),
    "a verdict of another rule": (
        change("predictions.json", put("predictions", 0, "claim", "in", to=["DIFFERS"]), upto="sealed"),
        CLAIM.format(0),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_that_does_not_hold_together(tmp_path: Path, keys: Path, name: str) -> None:
    plan, says = PLANS[name]
    outcome = look(Builder(tmp_path / "r", keys, plan).build())
    assert outcome.result == "FAILED"
    assert says in failed(outcome)[5]


def test_an_assistant_that_is_a_model(tmp_path: Path, keys: Path) -> None:
    def edit(protocol: Json) -> None:
        protocol["configurations"][0]["drafter"] = ASSISTANT
        protocol["models"]["m"] = {
            "kind": "tiny-llama", "seed": "1", "initializer_range": 0.1, "vocab": ["a", "b"], "eos": 0,
            "hidden": 4, "intermediate": 4, "layers": 1, "heads": 1, "context": 9,
        }  # fmt: skip

    assert failed(look(Builder(tmp_path / "r", keys, planned(edit)).build())) == {}


def first_edition(code: Path) -> None:
    """Replace the sealed schemas by those that know no exact stage."""
    shutil.rmtree(code / "schemas" / "v1")
    shutil.copytree(ROOT / "studies/optional-stopping/code/schemas/v1", code / "schemas" / "v1")


def without_leaves(code: Path) -> None:
    (code / "schemas" / "v1" / "leaf.schema.json").unlink()


SCHEMAS: dict[str, tuple[Callable[[Path], None], str]] = {
    "of the first edition": (first_edition, "protocol.json#/"),
    "without that of leaves": (without_leaves, "code/schemas/v1/leaf.schema.json: missing"),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_no_exact_stage_by_schemas_that_know_none(
    tmp_path: Path, keys: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    edit, says = SCHEMAS[name]
    (tmp_path / "audits").mkdir()
    monkeypatch.setattr(rules, "FILE", Path(shutil.copy(rules.FILE, tmp_path / "audits")))
    good = look(Builder(tmp_path / "good", keys, exact_plan()).build())
    assert good.result == "AGREES" and "code/schemas" in good.steps[5].detail()
    outcome = look(Builder(tmp_path / "bad", keys, change("code", edit, make=exact_plan)).build())
    assert outcome.result == "FAILED"
    assert says in failed(outcome)[5]
