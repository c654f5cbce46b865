"""The two readers and the two writers of JSON agree: on the examples of RFC 8785, on values, on any bytes."""

from __future__ import annotations

import json
import struct
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from audits import jsonc
from prereg.codec import canonical

VECTORS = json.loads((Path(__file__).with_name("rfc8785.json")).read_text("utf-8"))
TEXT = st.text().filter(lambda text: unicodedata.is_normalized("NFC", text))
NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda x: not x.is_integer()
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=25,
)
NEAR = st.text(alphabet='{}[]",:0123456789.eE+-\\ud8tnfalsr \u00e9\u0301\n', max_size=40)
MUTATED = st.tuples(VALUES, st.integers(0, 200), st.integers(0, 3), st.binary(max_size=3))


def double(bits: str) -> float:
    """The number of these IEEE 754 bits."""
    value: float = struct.unpack(">d", bytes.fromhex(bits))[0]
    return value


@pytest.mark.parametrize(("bits", "text"), VECTORS["numbers"])
def test_numbers_of_appendix_b(bits: str, text: str) -> None:
    value = double(bits)
    assert jsonc.number(value) == text
    if abs(value) < 2**53:  # what lies beyond is no number of these formats, on either side
        assert canonical.dumps(value) == text.encode()
        for read in (lambda data: canonical.loads(data, where="-"), jsonc.parse):
            assert read(text.encode()) == value


@pytest.mark.parametrize("bits", VECTORS["refused"])
def test_what_is_no_number(bits: str) -> None:
    with pytest.raises(canonical.MalformedJson):
        canonical.dumps(double(bits))
    with pytest.raises((jsonc.JsonFault, ValueError)):
        jsonc.canonical(double(bits))


@pytest.mark.parametrize("vector", VECTORS["values"], ids=["values", "order of keys"])
def test_examples_of_the_text(vector: dict[str, str]) -> None:
    value = json.loads(vector["input"])
    if "numbers" in value:
        assert jsonc.canonical(value).decode() == vector["canonical"]
        value["numbers"].remove(1e30)  # no number of these formats
    else:
        assert canonical.dumps(value).decode() == vector["canonical"]
        del value["\ufb33"]  # not NFC, as these formats want it
    assert canonical.dumps(value) == jsonc.canonical(value)


@given(VALUES)
def test_both_write_the_same(value: Any) -> None:
    data = canonical.dumps(value)
    assert jsonc.canonical(value) == data
    assert canonical.loads(data, where="-") == jsonc.parse(data) == value


def both(data: bytes) -> tuple[Any, Any]:
    """What each reader makes of it; None stands for a refusal, a value is in a list."""
    found: list[Any] = []
    for read, refusal in (
        (lambda: canonical.loads(data, where="-"), canonical.MalformedJson),
        (lambda: jsonc.parse(data), jsonc.JsonFault),
    ):
        try:
            found.append([read()])
        except refusal:
            found.append(None)
    return found[0], found[1]


def mutated(case: tuple[Any, int, int, bytes]) -> bytes:
    value, at, cut, new = case
    data = canonical.dumps(value)
    return data[:at] + new + data[at + cut :]


@settings(max_examples=400)
@given(st.binary(max_size=40) | NEAR.map(str.encode) | MUTATED.map(mutated))
@example(b"1e400")
@example(b"-0.0")
@example(b"1.0")
@example(b"9007199254740991.0")
@example(b"9007199254740992")
@example(b"9007199254740993")
@example(b"1E2")
@example(b"0.00000000000000000000000000000000000000001e41")
@example(b"1e-400")
@example(b"9007199254740991.4")
@example(b"4503599627370497.5")
@example(b'{"a":1,"a":1}')
@example(b'"\\ud800"')
@example(b'"\\ud83d\\ude00"')
@example(b"\xef\xbb\xbf1")
@example(b'"e\xcc\x81"')
@example(b"[" * 64 + b"]" * 64)
@example(b"[" * 65 + b"]" * 65)
@example(b"NaN")
@example(b"\x0b1")
@example(b'"\x7f"')
@example(b'"\n"')
@example(b"")
def test_both_read_the_same(data: bytes) -> None:
    one, two = both(data)
    assert one == two
    # 1 and True are equal in Python, and are two values of JSON.
    assert one is None or canonical.dumps(one[0]) == canonical.dumps(two[0])
