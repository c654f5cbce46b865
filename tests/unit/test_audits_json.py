"""The auditor's strict parser, and its RFC 8785 bytes."""

from __future__ import annotations

import struct

import pytest

from audits.jsonc import JsonFault, canonical, number, parse, parse_machine

REFUSED = {
    "duplicate key": b'{"a":1,"a":2}',
    "duplicate key, escaped": b'{"a":1,"\\u0061":2}',
    "duplicate key, deep": b'[{"a":{"b":1,"b":1}}]',
    "NaN": b"NaN",
    "infinity": b"[Infinity]",
    "minus infinity": b"-Infinity",
    "overflow": b"1e400",
    "negative overflow": b"-1e400",
    "integer beyond 2^53 - 1": b"9007199254740992",
    "negative integer beyond": b"-9007199254740992",
    "huge integer": b"1" + b"0" * 5000,
    "integral exponent form beyond": b"1e300",
    "decimal that rounds beyond": b"9007199254740992.5",
    "lone high surrogate": b'"\\ud800"',
    "lone low surrogate": b'"\\udc00x"',
    "lone surrogate in a key": b'{"\\udfff":1}',
    "surrogate in UTF-8": b'"\xed\xa0\x80"',
    "not NFC": '"e\u0301"'.encode(),
    "not NFC, escaped": b'"e\\u0301"',
    "key not NFC": '{"A\u030a":1}'.encode(),
    "byte order mark": b"\xef\xbb\xbf1",
    "UTF-16": "{}".encode("utf-16"),
    "latin-1": b'"\xe9"',
    "overlong": b'"\xc0\xaf"',
    "depth 65": b"[" * 65 + b"]" * 65,
    "depth 100,000": b"[" * 100_000,
    "objects, depth 65": b'{"a":' * 65 + b"1" + b"}" * 65,
    "nothing": b"",
    "two values": b"1 2",
    "trailing comma": b"[1,]",
    "comment": b"1//x",
    "single quotes": b"'a'",
    "leading zero": b"01",
    "plus": b"+1",
    "bare dot": b"1.",
    "control character": b'"\x01"',
    "raw newline": b'"\n"',
    "bad escape": b'"\\x41"',
    "NUL after": b"1\x00",
    "non-breaking space": "\u00a01".encode(),
    "Arabic digit": "\u0661".encode(),
}

TAKEN = {
    b" [1 , 2]\r\n\t": [1, 2],
    b"1.0": 1,
    b"-0.0": 0,
    b"-0": 0,
    b"1e2": 100,
    b"9007199254740991": 2**53 - 1,
    b"-9007199254740991.0": -(2**53) + 1,
    b"0.1": 0.1,
    b"1e-400": 0,
    b'"\\ud83d\\ude00"': "\U0001f600",
    b'{"a":null,"b":[true,false]}': {"a": None, "b": [True, False]},
    b"[" * 64 + b"]" * 64: None,
}

# RFC 8785, appendix B: the bits of a double, and how it is written.
RFC_NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_parser_refuses(name: str) -> None:
    with pytest.raises(JsonFault):
        parse(REFUSED[name])


@pytest.mark.parametrize("data", TAKEN)
def test_the_parser_takes(data: bytes) -> None:
    value = parse(data)
    if TAKEN[data] is not None:
        assert value == TAKEN[data]
        assert type(value) is type(TAKEN[data])


def test_a_fault_says_where() -> None:
    with pytest.raises(JsonFault) as caught:
        parse('{"a/b":["x","e\u0301"]}'.encode())
    assert caught.value.pointer == "/a~1b/1"


@pytest.mark.parametrize("bits", RFC_NUMBERS)
def test_numbers_of_the_rfc(bits: str) -> None:
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    assert number(value) == RFC_NUMBERS[bits]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 2**53, -(2**53)])
def test_numbers_without_a_form(value: float) -> None:
    with pytest.raises(JsonFault):
        number(value)


def test_the_example_of_the_rfc() -> None:
    value = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": '\u20ac$\u000f\u000aA\'B"\\\\"/',
        "literals": [None, True, False],
    }
    assert canonical(value) == (
        b'{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        b'"string":"\xe2\x82\xac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


def test_keys_sort_by_utf16_code_units() -> None:
    keys = ["\u20ac", "\r", "1", "\u0080", "\u00f6", "\U0001f600", "\u05d3", "a", "Z"]
    written = parse(canonical(dict.fromkeys(keys, 0)))
    assert list(written) == ["\r", "1", "Z", "a", "\u0080", "\u00f6", "\u05d3", "\u20ac", "\U0001f600"]
    # U+FF41 sorts after the surrogates of U+1F600, though its code point is smaller.
    assert list(parse(canonical({"\uff41": 0, "\U0001f600": 0}))) == ["\U0001f600", "\uff41"]


def test_the_serializer_refuses_what_the_parser_refuses() -> None:
    for value in ("\ud800", "e\u0301", {"\ud800": 1}, {1, 2}):
        with pytest.raises(JsonFault):
            canonical(value)


MACHINE = {
    "no newline": b'{"a":1}',
    "two newlines": b'{"a":1}\n\n',
    "CRLF": b'{"a":1}\r\n',
    "space": b'{"a": 1}\n',
    "unsorted": b'{"b":1,"a":1}\n',
    "other number": b'{"a":1.0}\n',
    "needless escape": b'{"a":"\\u0062"}\n',
}


@pytest.mark.parametrize("name", MACHINE)
def test_a_machine_file_is_canonical_to_the_byte(name: str) -> None:
    assert parse_machine(b'{"a":1}\n') == {"a": 1}
    with pytest.raises(JsonFault, match="canonical"):
        parse_machine(MACHINE[name])
