"""The rules that an exact stage puts on a study's files, each by name (docs/formats.md sections 6 and 11)."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from exact_fixture import MODEL, configuration, exact_files, exact_protocol

from prereg.codec.canonical import dumps, loads
from prereg.codec.convert import from_json, read_authored, to_json
from prereg.codec.study_files import parse_study
from prereg.collect.executors.base import opening_of, walk_of
from prereg.draft.scaffold import plan_seeds
from prereg.errors import PreregError
from prereg.model.plan import plan
from prereg.model.record import ShardMeta
from prereg.model.study import Assistant, ExactPlan, Protocol, Study
from prereg.model.verdict import Decisions
from prereg.stats.budget import budget_of

Change = Callable[[dict[str, Any]], None]


def parsed(
    change: Change = lambda p: None, files: Callable[[dict[str, Any]], None] = lambda f: None
) -> Study:
    protocol = exact_protocol()
    change(protocol)
    values = exact_files(protocol)
    files(values)
    return parse_study({name: json.dumps(value).encode() for name, value in values.items()})


def alone(p: dict[str, Any]) -> None:
    p["stages"] = p["stages"][1:]
    p["sampling"] = {}
    p["decision"] = {"rule": "exact", "threshold": 0, "calibration_allowance": None}
    p["exact"]["premise_alpha"] = None


def both(*changes: Change) -> Change:
    def change(p: dict[str, Any]) -> None:
        for one in changes:
            one(p)

    return change


def claim(**fields: Any) -> Callable[[dict[str, Any]], None]:
    def change(files: dict[str, Any]) -> None:
        files["predictions.json"]["predictions"][0]["claim"] |= fields

    return change


def only(*names: str) -> Change:
    return lambda p: p["stages"][1].update(configurations=list(names))


def test_an_exact_stage_beside_draws_and_one_alone_are_studies() -> None:
    study = parsed()
    assert [c.id for c in study.protocol.drawn()] == ["same"]
    assert [c.id for c in study.protocol.walked()] == ["other", "same"]
    shards = plan(study.protocol, study.seeds)
    assert [(s.unit.id, s.requests, s.rows, s.draws) for s in shards if s.channel == "exact"] == [
        (f"walked.{name}.{arm}", 4, 1, 0) for name in ("other", "same") for arm in ("off", "on")
    ]
    assert parsed(alone, lambda f: f["predictions.json"]["predictions"].pop()).protocol.drawn() == ()


def test_a_stage_may_name_its_channel_of_draws() -> None:
    assert parsed(lambda p: p["stages"][0].update(channel="draws")).protocol == parsed().protocol


def test_several_stages_of_draws_are_one_budget() -> None:
    def more(p: dict[str, Any]) -> None:
        p["configurations"].append(configuration("third"))
        p["stages"].append({"id": "later", "purpose": "held-out", "configurations": ["third"]})

    study = parsed(more)
    assert budget_of(study, "same").level == pytest.approx(0.05 / (2 * 16))
    assert budget_of(parsed(), "same").level == pytest.approx(0.05 / 16)


REFUSED: dict[str, tuple[Change, str, str]] = {
    "two exact stages": (
        both(
            only("other"),
            lambda p: p["stages"].append({**p["stages"][1], "id": "w2", "configurations": ["same"]}),
        ),
        "more than one exact stage",
        "protocol.json#/stages/2/channel",
    ),
    "a configuration in two stages of draws": (
        lambda p: p["stages"].append({**p["stages"][0], "id": "again"}),
        "'same' stands in 2 stages of draws",
        "protocol.json#/configurations/0/id",
    ),
    "a configuration in no stage": (
        lambda p: p["configurations"].append(configuration("third")),
        "'third' stands in no stage",
        "protocol.json#/configurations/2/id",
    ),
    "a stage with a configuration that is not there": (
        only("other", "same", "nobody"),
        "there is no configuration 'nobody'",
        "protocol.json#/stages/1/configurations/2",
    ),
    "an exact stage without its plan": (
        lambda p: p.pop("exact"),
        "an exact stage needs the plan",
        "protocol.json#/exact",
    ),
    "the plan of an exact stage that is not there": (
        lambda p: (p["stages"].pop(), p["configurations"].pop()),
        "there is no exact stage",
        "protocol.json#/exact",
    ),
    "the rule exact with a stage of draws": (
        lambda p: p.update(decision={"rule": "exact", "threshold": 0, "calibration_allowance": None}),
        "a study without draws is decided by the rule `exact`, and no other is",
        "protocol.json#/decision/rule",
    ),
    "another rule without draws": (
        both(alone, lambda p: p.update(decision=exact_protocol()["decision"])),
        "a study without draws is decided by the rule `exact`, and no other is",
        "protocol.json#/decision/rule",
    ),
    "the rule exact with a threshold": (
        both(alone, lambda p: p["decision"].update(threshold=0.01)),
        "threshold 0",
        "protocol.json#/decision/threshold",
    ),
    "the rule exact with a calibration": (
        both(alone, lambda p: p["decision"].update(calibration_allowance=0.1)),
        "has no calibration",
        "protocol.json#/decision/calibration_allowance",
    ),
    "sampling without draws": (
        both(alone, lambda p: p.update(sampling=exact_protocol()["sampling"])),
        "a study without draws has no sampling",
        "protocol.json#/sampling",
    ),
    "draws without sampling": (
        lambda p: p.update(sampling={}),
        "sampling must name exactly the arms",
        "protocol.json#/sampling",
    ),
    "a command that is walked": (
        lambda p: p["configurations"][1].update(
            adapter="command", command=["x"], model=None, prompt=None, horizon=None, drafter=None
        ),
        "a command's choices cannot be walked",
        "protocol.json#/configurations/1/adapter",
    ),
    "a walk without a drafter": (
        lambda p: p["configurations"][1].update(drafter=None),
        "needs a drafter",
        "protocol.json#/configurations/1/drafter",
    ),
    "a drafter whose model is not there": (
        lambda p: p["configurations"][1].update(
            drafter={"kind": "assistant", "model": "small", "max_tokens": 2}
        ),
        "there is no model 'small'",
        "protocol.json#/configurations/1/drafter/model",
    ),
    "a premise that is tested on nothing": (
        only("other"),
        "the premise is tested on none",
        "protocol.json#/exact/premise_alpha",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    change, what, where = REFUSED[name]
    with pytest.raises(PreregError, match=what) as caught:
        parsed(change, claim(configuration="same"))
    assert caught.value.where == where


FILES: dict[str, tuple[Callable[[dict[str, Any]], None], str, str]] = {
    "a block that is not of four seeds": (
        lambda f: f["seeds.json"]["blocks"][2].update(
            end=str(int(f["seeds.json"]["blocks"][2]["first"]) + 3)
        ),
        "holds 3 seeds; walked.other.off needs 4",
        "seeds.json#/blocks/2",
    ),
    "a claim on a configuration of the other channel": (
        lambda f: f["predictions.json"]["predictions"][1]["claim"].update(configuration="other"),
        "'other' is in no stage of draws",
        "predictions.json#/predictions/1/claim",
    ),
    "a verdict of the other channel": (
        claim(**{"in": ["FAILS"]}),
        "exact never says FAILS",
        "predictions.json#/predictions/0/claim",
    ),
    "an exact verdict by draws": (
        lambda f: f["predictions.json"]["predictions"][1]["claim"].update({"in": ["DEPARTS"]}),
        "channel-S never says DEPARTS",
        "predictions.json#/predictions/1/claim",
    ),
    "draws without a reference law": (
        lambda f: f["events.json"]["configurations"].update(
            same={**f["events.json"]["configurations"]["same"], "reference": None}
        ),
        "needs the reference law",
        "events.json#/configurations/same/reference",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_refused_files(name: str) -> None:
    change, what, where = FILES[name]
    with pytest.raises(PreregError, match=what) as caught:
        parsed(files=change)
    assert caught.value.where == where


def test_a_configuration_that_is_only_walked_may_lack_a_reference() -> None:
    def without(f: dict[str, Any]) -> None:
        families = f["events.json"]["configurations"]
        families["other"] = {**families["other"], "reference": None}

    assert parsed(files=without).events.configurations["other"].reference is None


def test_seeds_are_planned_in_blocks_of_four() -> None:
    protocol = parsed().protocol
    blocks = plan_seeds(protocol, 100)["blocks"]
    assert [int(b["end"]) - int(b["first"]) for b in blocks] == [4, 400, 4, 4, 4, 4]
    assert [b["unit"] for b in blocks] == [u.id for u in protocol.units()]


def test_the_worker_gets_the_drafter_with_its_model() -> None:
    def assisted(p: dict[str, Any]) -> None:
        p["models"]["small"] = {**MODEL, "seed": "2"}
        p["configurations"][1]["drafter"] = {"kind": "assistant", "model": "small", "max_tokens": 2}

    protocol = parsed(assisted).protocol
    other = protocol.configuration("other")
    assert other.drafter == Assistant(model="small", max_tokens=2)
    sent = opening_of(protocol, other).configuration["drafter"]
    assert sent == {"kind": "assistant", "model": {**MODEL, "seed": "2"}, "max_tokens": 2}
    assert to_json(other)["drafter"]["model"] == "small"


def test_a_walk_is_full_exactly_without_bounds() -> None:
    exact = ExactPlan(
        tolerance=1e-5, runs=None, mass=0.0, close_last=True, close_floor=0.0, premise_alpha=None
    )
    assert walk_of(exact)["mode"] == "full"
    for bounded in ({"runs": 5}, {"mass": 0.1}):
        value = from_json({**to_json(exact), **bounded}, ExactPlan, where="x")
        assert walk_of(value)["mode"] == "best-first"
        assert walk_of(value)["budget"] == {"runs": bounded.get("runs"), "seconds": None, "mass": value.mass}


def test_what_a_file_lacks_stays_absent() -> None:
    protocol = exact_protocol()
    protocol["stages"] = protocol["stages"][:1]
    protocol["configurations"] = protocol["configurations"][:1]
    del protocol["exact"]
    files: Mapping[str, Any] = {"protocol.json": protocol}
    value = read_authored(json.dumps(protocol).encode(), "protocol", Protocol, where="protocol.json")
    assert dumps(to_json(value)) == dumps(loads(json.dumps(files["protocol.json"]).encode(), where="x"))
    whole = exact_protocol()
    value = read_authored(json.dumps(whole).encode(), "protocol", Protocol, where="protocol.json")
    assert dumps(to_json(value)) == dumps(loads(json.dumps(whole).encode(), where="x"))


@pytest.mark.parametrize(("name", "cls"), [("shard-meta", ShardMeta), ("decisions", Decisions)])
def test_machine_files_come_out_as_they_went_in(name: str, cls: type) -> None:
    from prereg.codec.schema import schema_folder

    file = schema_folder() / "vectors" / f"{name}.vectors.json"
    values = [v["value"] for v in json.loads(file.read_text())["vectors"] if v["valid"]]
    assert len(values) >= 2
    for value in values:
        again = to_json(from_json(copy.deepcopy(value), cls, where="x"))
        assert dumps(again) == dumps(value)
