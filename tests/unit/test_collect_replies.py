"""A worker's replies become records, with what the engine returned beside the tokens, or its unit is lost."""

from __future__ import annotations

from typing import Any

import pytest

from prereg.collect.replies import BadReply, records_of
from prereg.model.law import RecordEntry
from prereg.model.plan import Shard
from prereg.model.study import Unit
from tests.unit.seal_kit import record_line

ZERO = {"proposals": 0, "verifications": 0, "accepted": 0}
SHARD = Shard(
    unit=Unit(stage="s", configuration="c", arm="off"),
    index=0,
    first_seed=7,
    requests=1,
    rows=2,
    first_request=0,
)
ENTRIES = [{"tokens": [0, 2], "values": [-0.25, "-inf"]}, {"tokens": [1], "values": [3]}]


def draw(**changes: Any) -> dict[str, Any]:
    return {"outcome": {"tokens": [2, 1], "finish": None}, "counters": ZERO, "record": ENTRIES} | changes


def read(*draws: Any, recorded: bool = True) -> list[Any]:
    replies = [{"seed": "7", "draws": list(draws)}]
    return records_of(SHARD, replies, seal="a" * 64, drafter=False, recorded=recorded)


def test_a_record_has_the_entries_that_were_told() -> None:
    crashed = draw(outcome={"crash": "ValueError"}, record=[])
    first, second = read(draw(), crashed)
    assert first.record == (
        RecordEntry(tokens=(0, 2), values=(-0.25, "-inf")),
        RecordEntry(tokens=(1,), values=(3.0,)),
    )
    assert second.record == ()
    assert b'"record":[{"tokens":[0,2],"values":[-0.25,"-inf"]},{"tokens":[1],"values":[3]}]' in record_line(
        first
    )
    assert b'"record":[]' in record_line(second)


def test_without_records_there_are_none() -> None:
    plain = {key: value for key, value in draw().items() if key != "record"}
    assert [record.record for record in read(plain, plain, recorded=False)] == [None, None]
    with pytest.raises(BadReply, match="no outcome with counters"):
        read(plain, draw(), recorded=False)
    with pytest.raises(BadReply, match="and a record"):
        read(draw(), plain)


@pytest.mark.parametrize(
    ("record", "what"),
    [
        (None, "no list"),
        ({}, "no list"),
        ([[0]], "not tokens and values"),
        ([{"tokens": [0]}], "not tokens and values"),
        ([{"tokens": [[0]], "values": [1]}], "token ids"),
        ([{"tokens": [0], "values": [[1]]}], "numbers"),
        ([{"tokens": [0], "values": ["NaN"]}], "numbers"),
        ([{"tokens": [0], "values": [True]}], "numbers"),
        ([{"tokens": [0, 1], "values": [1.0]}], "as many values as tokens"),
        ([{"tokens": [1, 0], "values": [1.0, 1.0]}], "ascending"),
    ],
)
def test_a_record_of_another_form_is_refused(record: Any, what: str) -> None:
    with pytest.raises(BadReply, match=rf"seed 7: .*{what}"):
        read(draw(), draw(record=record))


def test_a_number_seen_before_does_not_stand_for_what_only_equals_it() -> None:
    one, true = [{"tokens": [0], "values": [1]}], [{"tokens": [0], "values": [True]}]
    with pytest.raises(BadReply, match="numbers"):
        read(draw(record=one), draw(record=true))


def test_a_crash_has_no_entries() -> None:
    with pytest.raises(BadReply, match="a crash of seed 7 has a record"):
        read(draw(), draw(outcome={"crash": "ValueError"}))
