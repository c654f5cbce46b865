"""Files of edition 2 become types and come out as they went in; those of edition 1 gain nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from exact_fixture import exact_files, exact_protocol
from second_fixture import MECHANISM, encoded, second_files, second_study

from prereg.codec.canonical import dumps, loads
from prereg.codec.convert import from_json, read_authored, to_json
from prereg.codec.study_files import parse_study
from prereg.model.hypotheses import Hypotheses
from prereg.model.law import AllowedByPosition, Events, MinTokens, Predicates, RecordEntry
from prereg.model.plan import plan
from prereg.model.predictions import Predictions
from prereg.model.record import Record
from prereg.model.study import Grouping, Protocol, Sampling, Unit
from prereg.model.verdict import Decision

CLASSES: dict[str, type] = {
    "protocol": Protocol,
    "events": Events,
    "predicates": Predicates,
    "predictions": Predictions,
    "hypotheses": Hypotheses,
}


def with_everything(files: dict[str, Any]) -> dict[str, Any]:
    files["protocol.json"]["sampling"]["off"]["builds"] = {"plain": {"rows": 4, "shard_requests": 50}}
    files["predicates.json"]["predicates"] += [
        {"id": "n", "statement": "-", "source": "-", "rule": {"kind": "min-tokens", "n": 1}},
        {
            "id": "m",
            "statement": "-",
            "source": "-",
            "rule": {"kind": "allowed-by-position", "positions": [[0], [1, 2]]},
        },
    ]
    files["predictions.json"]["predictions"][1]["claim"] |= {"channel": "records"}
    return files


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("edition", [1, 2])
def test_what_is_read_comes_out_as_it_went_in(name: str, edition: int) -> None:
    files = exact_files(exact_protocol()) if edition == 1 else with_everything(second_files())
    data = json.dumps(files.get(f"{name}.json", second_files()["hypotheses.json"])).encode()
    value: Any = read_authored(data, name, CLASSES[name], where="x")
    assert dumps(to_json(value)) == dumps(loads(data, where="x"))


def test_a_study_of_edition_2_is_parsed() -> None:
    study = second_study()
    assert study.protocol.edition == 2
    records = study.protocol.configuration("same").records
    assert records is not None and records.told == 2
    family = study.events.configurations["same"]
    assert family.hypothesis is not None and family.hypothesis.id == MECHANISM
    assert family.records is not None and family.records[0].entry.tokens == (0, 1)
    registered = study.registered("other")
    assert registered is not None and (registered.hypothesis, registered.priority) == (MECHANISM, 2)
    assert study.registered("nothing") is None


def test_a_study_of_edition_1_has_nothing_of_it() -> None:
    study = parse_study(encoded(exact_files(exact_protocol())))
    assert study.protocol.edition is None and study.hypotheses is None
    assert study.registered("same") is None


def test_rules_of_predicates() -> None:
    value = with_everything(second_files())["predicates.json"]
    rules = [p.rule for p in from_json(value, Predicates, where="x").predicates]
    assert rules[1:] == [MinTokens(n=1), AllowedByPosition(positions=((0,), (1, 2)))]


def test_rows_by_build() -> None:
    sampling = Sampling(
        draws=400, rows=100, shard_requests=2, builds={"plain": Grouping(rows=4, shard_requests=50)}
    )
    assert sampling.of_build("plain") == Sampling(draws=400, rows=4, shard_requests=50)
    assert sampling.of_build("else") == Sampling(draws=400, rows=100, shard_requests=2)
    assert (sampling.requests, sampling.of_build("plain").requests) == (4, 100)


def test_the_plan_groups_a_unit_by_its_build() -> None:
    def rows(p: dict[str, Any]) -> None:
        p["sampling"]["off"]["builds"] = {"plain": {"rows": 4, "shard_requests": 60}}

    def blocks(files: dict[str, Any]) -> None:
        for i, block in enumerate(files["seeds.json"]["blocks"]):
            first = 10_000 * (i + 1)
            need = {"drawn.same.off": 100, "drawn.same.on": 400}.get(block["unit"], 4)
            block.update(first=str(first), end=str(first + need))

    study = second_study(rows, blocks)
    unit = Unit(stage="drawn", configuration="same", arm="off")
    assert study.protocol.sampling_of(unit).rows == 4
    shards = [s for s in plan(study.protocol, study.seeds) if s.unit == unit]
    assert [(s.requests, s.rows, s.first_draw) for s in shards] == [(60, 4, 0), (40, 4, 240)]


@pytest.mark.parametrize("record", [None, (), (RecordEntry(tokens=(0, 2), values=(-0.5, "-inf")),)])
def test_a_record_with_what_is_beside_its_tokens(record: tuple[RecordEntry, ...] | None) -> None:
    value = {
        "seal": "0" * 64,
        "unit": "a.b.c",
        "shard": 0,
        "attempt": 1,
        "draw": 0,
        "seed": "1",
        "row": 0,
        "outcome": {"tokens": [1], "finish": None},
        "counters": {"proposals": 0, "verifications": 0, "accepted": 0},
    }
    if record is not None:
        value["record"] = [{"tokens": list(e.tokens), "values": list(e.values)} for e in record]
    parsed = from_json(value, Record, where="x")
    assert parsed.record == record
    assert to_json(parsed) == value


@pytest.mark.parametrize("exposed", [{}, {"exposed": None}, {"exposed": 3}])
def test_an_exposure_that_is_lost_is_not_one_that_is_not_there(exposed: dict[str, Any]) -> None:
    from prereg.codec.schema import schema_folder

    file = schema_folder() / "vectors" / "decisions.vectors.json"
    vectors = json.loads(file.read_text())["vectors"]
    plain = next(
        v["value"]["configurations"][0] for v in vectors if v["valid"] and v["value"]["configurations"]
    )
    plain.pop("exposed", None)
    value = {**plain, **exposed}
    assert to_json(from_json(value, Decision, where="x")) == value
