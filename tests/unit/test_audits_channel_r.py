"""Section 16 in the small: entries, what matches, which positions mismatch, and what is decided of it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from audits_second import entry
from audits_slow_second import slow_matches
from audits_tools import ROOT
from hypothesis import given
from hypothesis import strategies as st

from audits.channel_r import RecordReader, Reference, agree, entry_wrong, matches, record_events
from audits.decide import decide
from audits.jsonc import canonical, parse
from audits.records import LineReader, Records, Tally
from audits.schema import Schema
from audits.study import Study

Json = dict[str, Any]
SCHEMA = Schema(parse((ROOT / "schemas/v1/record.schema.json").read_bytes()))
PART = LineReader(SCHEMA, "a" * 64).part
REFERENCE: dict[int, Any] = {0: -1.0, 1: -2.0, 2: -3.0, 3: "-inf"}
# entry, told, whether it matches the reference above within 0.25
MATCHES: dict[str, tuple[Json, int, bool]] = {
    "all of it": (entry(-1, -2, -3, "-inf"), 4, True),
    "its two greatest": (entry(-1, -2), 2, True),
    "more than told": (entry(-1, -2, -3), 2, True),
    "fewer than told": (entry(-1, -2), 3, False),
    "nothing, with one told": (entry(), 1, False),
    "a value at the tolerance": (entry(-1, -2.25), 2, True),
    "a value beyond it": (entry(-1, -2.375), 2, False),
    "a number for -inf": (entry(-1, -2, -3, -99), 2, False),
    "-inf for a number": (entry(-1, "-inf"), 2, False),
    "inf": (entry("inf", -2), 2, False),
    "nan": (entry("nan", -2), 2, False),
    "a token that the reference has not": (entry(-1, -2, tokens=[0, 9]), 2, False),
    "the greatest left out": (entry(-2, -3, tokens=[1, 2]), 2, False),
    # The second greatest of the entry is -3: the -2 that it leaves out is above it by 1.
    "the second left out": (entry(-1, -3, tokens=[0, 2]), 2, False),
    # Here one value is told, the greatest, and nothing left out is above that.
    "one told, one more": (entry(-1, -3, tokens=[0, 2]), 1, True),
    # Told two, the second greatest is -inf: any number left out is above it.
    "-inf told before a number": (entry(-1, "-inf", tokens=[0, 3]), 2, False),
}


@pytest.mark.parametrize("name", MATCHES)
def test_what_matches(name: str) -> None:
    told, how_many, expected = MATCHES[name]
    assert matches(told, REFERENCE, how_many, 0.25) is expected


def test_a_left_out_value_may_be_above_by_the_tolerance() -> None:
    # The entry tells 2.0; the 2.25 that it leaves out is above by the tolerance, the 2.375 by more.
    assert matches(entry(2.0), {0: 2.0, 1: 2.25}, 1, 0.25)
    assert not matches(entry(2.0), {0: 2.0, 1: 2.375}, 1, 0.25)
    # `inf` is above every number, `-inf` below, and `nan` is above nothing.
    assert not matches(entry(2.0), {0: 2.0, 1: "inf"}, 1, 0.25)
    assert matches(entry(2.0), {0: 2.0, 1: "-inf"}, 1, 0.25)
    assert matches(entry(2.0), {0: 2.0, 1: "nan"}, 1, 0.25)
    assert matches(entry("-inf"), {0: "-inf", 1: "-inf"}, 1, 0.25)


def test_only_numbers_and_minus_infinity_agree() -> None:
    assert agree("-inf", "-inf", 0.1)
    assert not any(agree(text, text, 0.1) for text in ("inf", "nan"))
    assert not agree("-inf", "nan", 0.1)


values = st.one_of(st.integers(-8, 8).map(lambda n: n / 4), st.sampled_from(["-inf", "inf"]))


@given(st.lists(values, max_size=5), st.dictionaries(st.integers(0, 5), values, max_size=5), st.data())
def test_matching_is_that_of_the_slow_twin(
    known: list[Any], told: dict[int, Any], data: st.DataObject
) -> None:
    for token in data.draw(st.sets(st.sampled_from([*range(len(known))]))) if known else ():
        told[token] = known[token]
    reference = entry(*known)
    one = entry(*(told[token] for token in sorted(told)), tokens=sorted(told))
    how_many = data.draw(st.integers(1, 3))
    expected = slow_matches(one, reference, how_many, 0.25)
    assert matches(one, dict(enumerate(known)), how_many, 0.25) is expected


def test_an_entry_has_a_value_for_each_of_its_ascending_tokens() -> None:
    assert entry_wrong(entry(-1, -2)) is None
    assert entry_wrong(entry()) is None
    assert "2 tokens and 1 values" in str(entry_wrong({"tokens": [1, 2], "values": [0]}))
    for tokens in ([1, 1], [2, 1]):
        assert "ascending" in str(entry_wrong(entry(-1, -2, tokens=tokens)))


TABLE: list[Json] = [
    {"prefix": [], "entry": entry(-1, -2)},
    {"prefix": [0], "entry": entry(-3, -4)},
    {"prefix": [0, 1], "entry": entry(-5, -6)},
]
GOOD = [entry(-1, -2), entry(-3, -4), entry(-5, -6)]
BAD = entry(-9, -2)
# tokens, record, the positions that mismatch
POSITIONS: dict[str, tuple[list[int], list[Json], tuple[int, ...]]] = {
    "none": ([0, 1, 0], GOOD, ()),
    "the first": ([0, 1, 0], [BAD, *GOOD[1:]], (1,)),
    "the first and the last": ([0, 1, 0], [BAD, GOOD[1], BAD], (1, 3)),
    "an entry too few": ([0, 1, 0], GOOD[:2], (3,)),
    "an entry too many": ([0, 1], GOOD, (3,)),
    "none at all": ([0, 1], [], (1, 2)),
    "no tokens": ([], [GOOD[0]], (1,)),
    "neither": ([], [], ()),
    # After 1 the reference has nothing, nor after anything that begins with it.
    "a prefix that is not there": ([1, 0, 0], GOOD, (2, 3)),
}


def _reader(table: list[Json] | None) -> RecordReader:
    plan = {"kind": "logprobs", "source": "x", "told": 2, "tolerance": 0.25}
    plan["reference"] = "none" if table is None else "replay"
    return RecordReader(Reference.of(plan, table), PART)


def _mismatches(outcome: Json, record: Any, table: list[Json] | None = TABLE) -> tuple[int, ...] | None:
    return _reader(table).mismatches(canonical(outcome), canonical(record))


@pytest.mark.parametrize("name", POSITIONS)
def test_which_positions_mismatch(name: str) -> None:
    tokens, record, expected = POSITIONS[name]
    assert _mismatches({"tokens": tokens, "finish": None}, record) == expected
    assert _mismatches({"tokens": tokens, "finish": None}, record, table=None) == ()


REFUSED: dict[str, tuple[Json, Any]] = {
    "a crash with a record": ({"crash": "E"}, GOOD),
    "a value": ({"value": 1}, []),
    "no list": ({"tokens": [0], "finish": None}, {}),
    "a list of no entries": ({"tokens": [0], "finish": None}, [1]),
    "an entry of one list": ({"tokens": [0], "finish": None}, [{"tokens": [1]}]),
    "lists of two lengths": ({"tokens": [0], "finish": None}, [{"tokens": [0, 1], "values": [1]}]),
    "tokens out of order": ({"tokens": [0], "finish": None}, [entry(-1, -2, tokens=[1, 0])]),
    "a token below 0": ({"tokens": [0], "finish": None}, [entry(-1, tokens=[-1])]),
    "a token that is none": ({"tokens": [0], "finish": None}, [entry(-1, tokens=[0.5])]),
    "another text": ({"tokens": [0], "finish": None}, [entry("-Infinity")]),
    "true for a value": ({"tokens": [0], "finish": None}, [entry(True)]),
    "null for a value": ({"tokens": [0], "finish": None}, [entry(None)]),
    "one more key": ({"tokens": [0], "finish": None}, [entry(-1) | {"x": 1}]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_records_that_are_none(name: str) -> None:
    outcome, record = REFUSED[name]
    assert _mismatches(outcome, record) is None
    assert _mismatches(outcome, record, table=None) is None


@pytest.mark.parametrize(
    "record",
    [
        b"", b"[", b"]", b"[]]", b"[[]]", b"[{}]", b"[{]", b'[{"tokens":[0],"values":[1.0]}]',
        b'[{"tokens":[0],"values":[ 1]}]', b'[{"tokens":[00],"values":[1]}]',
        b'[{"tokens":[0],"values":[1_0]}]', b'[{"tokens":[0],"values":[-1.5e+300]}]',
        b'[{"tokens":[0],"values":[inf]}]', b'[{"tokens":[0],"values":[1e400]}]',
        b'[{"tokens":[0],"values":[1]},]', b'[{"tokens":[0],"values":[1]} ,{"tokens":[0],"values":[1]}]',
        b'[{"tokens":[0],"values":[-0]}]', b'[{"values":[1],"tokens":[0]}]',
        b'[["tokens":[0],"values":[1]]]',
    ],
)  # fmt: skip
def test_bytes_that_are_no_canonical_record(record: bytes) -> None:
    assert _reader(TABLE).mismatches(canonical({"tokens": [0], "finish": None}), record) is None


def test_every_number_that_canonical_bytes_can_say_is_read() -> None:
    said = [1e-7, -1.5e-300, 123456789.125, 0.1, -3, 2**53 - 1, 5e-324, "nan"]
    outcome = {"tokens": [0], "finish": None}
    table: list[Json] = [{"prefix": [], "entry": entry(*said)}]
    # All agree but `nan`, which agrees with nothing.
    assert _mismatches(outcome, [entry(*said)], table) == (1,)
    assert _mismatches(outcome, [entry(*said[:-1])], table) == ()


def test_the_record_events() -> None:
    c: Json = {"horizon": 2, "records": {"reference": "replay"}}
    assert record_events(c) == ["any", "position-1", "position-2"]
    assert record_events(c | {"records": {"reference": "none"}}) == []
    assert record_events({"horizon": 2}) == []


A = {"tokens": [0], "finish": None}


def _decided(off: Any, on: Any, reference: str = "replay", proposals: int = 9) -> Json:
    """One configuration of horizon 1 and one listed event; each arm is its draws by mismatching positions."""
    c: Json = {"id": "c", "predicates": [], "horizon": 1, "records": {"reference": reference}}
    study = Study(
        id="s",
        protocol={
            "edition": 2,
            "configurations": [c],
            "stages": [{"id": "s", "configurations": ["c"]}],
            "alpha": 0.05,
            "decision": {"rule": "channel-S", "threshold": 0.01, "calibration_allowance": 0.005},
        },
        blocks=[],
        events={"c": {"reference": [{"outcome": A, "p": 1}], "events": [
            {"id": "a", "kind": "outcome", "outcome": A}]}},
        predicates={},
        predictions=[],
        off="off",
        on="on",
    )  # fmt: skip
    records = Records()
    for arm, draws in (("off", off), ("on", on)):
        if draws is None:
            records.lost[f"s.c.{arm}"] = "INVALID"
            continue
        tally = Tally(Counter({canonical(A): sum(draws.values())}), proposals=proposals, exposed=2)
        tally.mismatches = Counter({positions: n for positions, n in draws.items() if positions})
        records.tallies[f"s.c.{arm}"] = tally
    return decide(study, records, c).row


def test_three_draws_and_one_mismatch() -> None:
    row = _decided({(): 3}, {(): 2, (1,): 1})
    # E = 1, R = 2, m = 1: B = 4(1 + 2) = 12, and each bound has level 0.05 / 12 = 1/240.
    assert (row["B"], row["level"], row["exposed"]) == (12, 0.05 / 12, 2)
    # Beta(1, 3) has the distribution function 1 - (1 - x)^3: L_on of 1 in 3 is 1 - (239/240)^(1/3).
    low = 1 - (239 / 240) ** (1 / 3)
    # U of 0 in 3 is 1 - (1/240)^(1/3); U of 1 in 3 is the root of I(2, 2), 3x^2 - 2x^3 = 239/240.
    high = 1 - (1 / 240) ** (1 / 3)
    first, second = row["records"]["bounds"]
    assert first["event"] == "any"
    assert second == first | {"event": "position-1"}
    assert (first["k_off"], first["k_on"], first["L_off"]) == (0, 1, 0)
    assert first["L_on"] == pytest.approx(low, abs=1e-14)
    assert first["U_off"] == pytest.approx(high, abs=1e-14)
    u = first["U_on"]
    assert 3 * u**2 - 2 * u**3 == pytest.approx(239 / 240, abs=1e-14)
    # The two events tie, and the first is named.
    assert row["records"]["D_event"] == "any"
    assert row["records"]["D"] == pytest.approx(low - high, abs=1e-14)
    assert (row["records"]["verdict"], row["records"]["reasons"]) == ("NOT_REJECTED", ["none"])


def test_nine_mismatches_of_nine_fail() -> None:
    # L of 9 in 9 is (1/240)^(1/9) = 0.5439..., U of 0 in 9 is 1 minus that: D = 0.0878...
    row = _decided({(): 9}, {(1,): 9})
    low = (1 / 240) ** (1 / 9)
    assert row["records"]["D"] == pytest.approx(2 * low - 1, abs=1e-14)
    assert (row["records"]["verdict"], row["records"]["reasons"]) == ("FAILS", ["mismatch"])
    # It moves nothing of the configuration's own verdict.
    assert (row["verdict"], row["eligible"]) == ("NOT_REJECTED", False)
    # The other way round nothing fails: complements are no record events.
    assert _decided({(1,): 9}, {(): 9})["records"]["verdict"] == "NOT_REJECTED"


def test_a_mismatch_past_the_horizon_is_one_of_any() -> None:
    bounds = _decided({(): 9}, {(1, 2): 4, (2,): 3, (): 2})["records"]["bounds"]
    assert [(b["event"], b["k_on"]) for b in bounds] == [("any", 7), ("position-1", 4)]


def test_records_that_nothing_can_be_decided_of() -> None:
    row = _decided({(): 3}, {(): 3}, reference="none")
    nothing: Json = {"D": None, "D_event": None, "bounds": []}
    assert row["B"] == 4
    assert row["records"] == nothing | {"verdict": "INCOMPLETE", "reasons": ["no-reference"]}
    lost: Any = None
    row = _decided({(): 3}, lost)
    assert row["records"] == nothing | {"verdict": "INVALID", "reasons": ["unit-lost"]}
    assert row["exposed"] is None
    row = _decided(lost, {(): 3})
    assert (row["records"]["verdict"], row["exposed"]) == ("INVALID", 2)
    assert _decided(lost, {(): 3}, reference="none")["records"]["verdict"] == "INCOMPLETE"
    row = _decided({(): 9}, {(1,): 9}, proposals=0)
    assert (row["records"]["verdict"], row["records"]["reasons"]) == ("INCONCLUSIVE", ["nothing-proposed"])
    assert row["records"]["D"] > 0
