"""What edition 2 asks of the study files, each rule by name (docs/formats.md sections 6, 11, 15 and 16)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from exact_fixture import tokens
from second_fixture import MECHANISM, second_study

from prereg.codec.canonical import dumps
from prereg.errors import PreregError

Change = Callable[[dict[str, Any]], None]


def nothing(_: dict[str, Any]) -> None:
    """Leaves the study as it is."""


def same(**fields: Any) -> Change:
    """Changes the family of `same`; None takes a member away."""

    def change(files: dict[str, Any]) -> None:
        family = files["events.json"]["configurations"]["same"]
        for name, value in fields.items():
            if value is None:
                del family[name]
            else:
                family[name] = value

    return change


def law(**fields: Any) -> Change:
    return lambda f: f["events.json"]["configurations"]["same"]["hypothesis"].update(fields)


def register(**fields: Any) -> Change:
    return lambda f: f["hypotheses.json"]["configurations"][0].update(fields)


def records(**fields: Any) -> Change:
    return lambda p: p["configurations"][0]["records"].update(fields)


def builds(value: dict[str, Any]) -> Change:
    return lambda p: p["sampling"]["off"].update(builds=value)


def a_h(**fields: Any) -> Change:
    return lambda f: f["events.json"]["configurations"]["same"]["events"][-1].update(fields)


def both(*changes: Change) -> Change:
    def change(value: dict[str, Any]) -> None:
        for one in changes:
            one(value)

    return change


def claim(**fields: Any) -> Change:
    return lambda f: f["predictions.json"]["predictions"][1]["claim"].update(fields)


def unregister(files: dict[str, Any]) -> None:
    files["hypotheses.json"]["configurations"] = []
    for family in files["events.json"]["configurations"].values():
        del family["hypothesis"]
        family["events"].pop()


def reference(i: int, **fields: Any) -> Change:
    return lambda f: f["events.json"]["configurations"]["same"]["records"][i].update(fields)


def equal_law(files: dict[str, Any]) -> None:
    family = files["events.json"]["configurations"]["same"]
    family["hypothesis"]["law"] = copy.deepcopy(family["reference"])


def no_plan(p: dict[str, Any]) -> None:
    del p["hypotheses"]


def first_edition(p: dict[str, Any]) -> None:
    """Edition 1, and nothing of edition 2 in the protocol."""
    del p["edition"], p["hypotheses"], p["configurations"][0]["records"]


def plain_files(files: dict[str, Any]) -> None:
    """Nothing of edition 2 beside the protocol."""
    unregister(files)
    del files["hypotheses.json"], files["events.json"]["configurations"]["same"]["records"]


def event_gap(p: dict[str, Any]) -> None:
    p["decision"] = {"rule": "event-gap", "threshold": 0.01, "calibration_allowance": None}
    for c in p["configurations"]:
        c["predicates"] = []


def without_references(files: dict[str, Any]) -> None:
    files["events.json"]["harness_sha256"] = None
    for family in files["events.json"]["configurations"].values():
        family["reference"] = None


def walked_only(p: dict[str, Any]) -> None:
    del p["configurations"][0]["records"]
    p["configurations"][1]["records"] = {
        "kind": "scores", "reference": "none", "source": "-", "told": 1, "tolerance": 0.1,
    }  # fmt: skip


def resized(files: dict[str, Any], requests: int = 100_000) -> None:
    """The blocks of the reference arm's units of draws have that many seeds, far from the others."""
    for i, block in enumerate(files["seeds.json"]["blocks"]):
        if block["unit"].endswith(".off") and not block["unit"].startswith("walked."):
            first = 10**9 + i * 10**6
            block.update(first=str(first), end=str(first + requests))


SKEW = [{"outcome": tokens(0, 0), "p": 0.5}, {"outcome": tokens(1, 1), "p": 0.5}]

ACCEPTED: dict[str, tuple[Change, Change]] = {
    "as it is": (nothing, nothing),
    "edition 1": (first_edition, plain_files),
    "edition 1, a file of that name": (
        first_edition, both(plain_files, lambda f: f.update({"hypotheses.json": {"what": "ever"}}))),
    "nothing registered": (no_plan, unregister),
    "no file, nothing registered": (no_plan, both(unregister, lambda f: f.pop("hypotheses.json"))),
    "records without a reference": (records(reference="none"), same(records=None)),
    "rows by build": (builds({"plain": {"rows": 100, "shard_requests": 1}}), nothing),
    "as many shards as have names": (
        lambda p: p["sampling"]["off"].update(draws=100_000, rows=1, shard_requests=1), resized),
    "shards that no unit has": (
        lambda p: p["sampling"]["off"].update(draws=200_002, rows=2, shard_requests=1, builds={
            "plain": {"rows": 100_001, "shard_requests": 1}}), lambda f: resized(f, 2)),
    "a law that crashes": (nothing, both(
        law(law=[{"outcome": {"crash": "E"}, "p": 0.5}, {"outcome": tokens(0, 0), "p": 0.5}]),
        a_h(outcomes=[tokens(0, 0)]),
    )),
    "an empty A_H without an event": (nothing, both(
        equal_law, lambda f: f["events.json"]["configurations"]["same"]["events"].pop())),
    "a claim of records": (nothing, claim(channel="records", **{"in": ["INCOMPLETE"]})),
    "a claim of a hypothesis": (nothing, claim(channel="hypothesis", **{"in": ["NOT_COMPATIBLE"]})),
}  # fmt: skip

REFUSED: dict[str, tuple[Change, Change, str]] = {
    "rows by build in edition 1": (
        both(first_edition, builds({"plain": {"rows": 100, "shard_requests": 1}})), plain_files,
        "belongs to edition 2"),
    "records in edition 1": (lambda p: p.pop("edition"), nothing, "belongs to edition 2"),
    "a plan of hypotheses in edition 1": (
        both(first_edition, lambda p: p.update(hypotheses={"alpha": 0.05, "allowance": 0})), plain_files,
        "belongs to edition 2"),
    "a claim of records in edition 1": (
        first_edition, both(plain_files, claim(channel="records")), "belongs to edition 2"),
    "a build that draws nothing": (
        builds({"else": {"rows": 100, "shard_requests": 1}}), nothing, "has the build 'else'"),
    "rows of a build that do not divide": (
        both(
            lambda p: p["sampling"].update(on={"draws": 400, "rows": 1, "shard_requests": 200, "builds": {
                "plain": {"rows": 3, "shard_requests": 1}}})), nothing, "not a multiple of 3 rows"),
    "more shards than have a name": (
        lambda p: p["sampling"]["off"].update(draws=100_001, rows=1, shard_requests=1), nothing,
        "would make 100,001 shards of a unit"),
    "more shards of a build than have a name": (
        lambda p: p["sampling"]["off"].update(draws=200_002, rows=2, shard_requests=2, builds={
            "plain": {"rows": 2, "shard_requests": 1}}), nothing, "would make 100,001 shards of a unit"),
    "records where nothing is drawn": (walked_only, same(records=None), "no stage of draws, and has no rec"),
    "a reference that is missing": (nothing, same(records=None), "the reference is missing"),
    "a reference where there is none": (records(reference="none"), nothing, "says of no reference"),
    "a prefix twice": (nothing, reference(2, prefix=[0]), "prefix stands twice"),
    "no empty prefix": (nothing, reference(0, prefix=[0, 0]), "empty prefix is missing"),
    "too few values": (records(told=3), nothing, "3 are told"),
    "lists of two lengths": (
        nothing, reference(1, entry={"tokens": [0, 1, 2], "values": [0, 0]}), "not as many values"),
    "tokens that descend": (
        nothing, reference(1, entry={"tokens": [1, 0], "values": [0, 0]}), "not ascending"),
    "a token twice": (
        nothing, reference(1, entry={"tokens": [1, 1], "values": [0, 0]}), "not ascending"),
    "another study's hypotheses": (
        nothing, lambda f: f["hypotheses.json"].update(study="else"), "belongs to study 'else'"),
    "a hypothesis twice": (
        nothing, lambda f: f["hypotheses.json"]["hypotheses"].append(f["hypotheses.json"]["hypotheses"][0]),
        "stands twice"),
    "two hypotheses of one configuration": (nothing, register(configuration="other"), "registers two"),
    "a registration of nothing": (nothing, register(hypothesis="H-else"), "no hypothesis 'H-else'"),
    "a registration of no configuration": (nothing, register(configuration="gone"), "configuration 'gone'"),
    "no drafter": (lambda p: p["configurations"][0].update(drafter=None), nothing, "drafter"),
    "no plan of hypotheses": (no_plan, nothing, "need their alpha"),
    "a plan and nothing registered": (nothing, unregister, "registers nothing"),
    "a plan and no file": (
        nothing, both(unregister, lambda f: f.pop("hypotheses.json")), "registers nothing"),
    "no alpha though drawn": (lambda p: p["hypotheses"].update(alpha=None), nothing, "need an alpha"),
    "an alpha though nothing is drawn": (nothing, both(
        lambda f: f["hypotheses.json"]["configurations"].pop(0),
        same(hypothesis=None), lambda f: f["events.json"]["configurations"]["same"]["events"].pop(),
    ), "nothing to spend it on"),
    "no law": (nothing, same(hypothesis=None), "law of H-D1-phys is missing"),
    "a law of nothing": (
        lambda p: p["hypotheses"].update(alpha=None),
        lambda f: f["hypotheses.json"]["configurations"].pop(0), "no mechanism is"),
    "a law of another": (nothing, law(id="H-else"), "is H-else, and registered is H-D1-phys"),
    "an event of another": (nothing, a_h(hypothesis="H-else"), "names H-else"),
    "an event where nothing is registered": (
        lambda p: p["hypotheses"].update(alpha=None),
        both(lambda f: f["hypotheses.json"]["configurations"].pop(0), same(hypothesis=None)),
        "registered is none"),
    "a simulator that is off": (nothing, law(switch=1e-11), "1e-11 off P"),
    "a law that does not sum to 1": (nothing, law(law=SKEW[:1]), "does not sum to 1"),
    "an outcome twice": (nothing, law(law=[SKEW[0], SKEW[0]]), "stands twice in the law"),
    "an outcome without an event": (
        nothing, law(law=[SKEW[0], {"outcome": tokens(0, 2), "p": 0.5}]), "no `outcome` event"),
    "no A_H": (
        nothing, lambda f: f["events.json"]["configurations"]["same"]["events"].pop(), "0 events hold"),
    "two A_H": (nothing, lambda f: f["events.json"]["configurations"]["same"]["events"].append(
        {**f["events.json"]["configurations"]["same"]["events"][-1], "id": "again"}), "2 events hold"),
    "an empty A_H with an event": (nothing, equal_law, "1 events hold A_H, which has 0"),
    "another A_H": (nothing, a_h(outcomes=[tokens(0, 0), tokens(1, 1)]), "is not A_H"),
    "records under event-gap": (
        both(event_gap, no_plan), both(without_references, unregister), "event-gap has no records"),
    "a mechanism under event-gap": (event_gap, without_references, "event-gap|no reference law"),
    "a claim of records that are not there": (
        nothing, claim(channel="records", configuration="other"), "has no records"),
    "a claim of a hypothesis that is not drawn": (
        nothing, claim(channel="hypothesis", configuration="other", **{"in": ["COMPATIBLE"]}),
        "has no registered hypothesis in a stage of draws"),
    "a claim of records by another word": (
        nothing, claim(channel="records", **{"in": ["DIFFERS"]}), "records never says DIFFERS"),
    "a claim of a hypothesis by another word": (
        nothing, claim(channel="hypothesis", **{"in": ["FAILS"]}), "hypothesis never says FAILS"),
}  # fmt: skip


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str) -> None:
    change, files = ACCEPTED[name]
    second_study(change, files)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    change, files, message = REFUSED[name]
    with pytest.raises(PreregError, match=message):
        second_study(change, files)


def test_a_h_is_what_the_mechanism_raises() -> None:
    from prereg.codec.mechanisms import raised
    from prereg.model.outcomes import key

    family = second_study().events.configurations["same"]
    assert family.hypothesis is not None and family.hypothesis.id == MECHANISM
    assert {dumps(k[1]) for k in raised(family)} == {b"[0,0]", b"[1,0]"}
    assert raised(family) <= {key(m.outcome) for m in family.hypothesis.law}
