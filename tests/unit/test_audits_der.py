"""The strict DER reader: one encoding for each value, and nothing but faults for any other bytes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from audits_stamps import integer, oid, seq, tlv

from audits import der
from audits.der import DerFault, parse


def test_values() -> None:
    fields = parse(
        seq(integer(-129), oid("1.2.840.113549.1.9.16.1.4"), tlv(1, b"\xff"), tlv(4, b"x"))
    ).sequence()
    assert fields.take().integer() == -129
    assert fields.take().oid() == "1.2.840.113549.1.9.16.1.4"
    assert fields.take().boolean() is True
    assert fields.take().octets() == b"x"
    fields.end()
    assert parse(tlv(6, b"\x88\x37")).oid() == "2.999"
    assert parse(tlv(4, b"x" * 300)).octets() == b"x" * 300


@pytest.mark.parametrize(
    ("content", "time"),
    [
        (b"20261129120000Z", datetime(2026, 11, 29, 12, tzinfo=UTC)),
        (b"20261129120000.5Z", datetime(2026, 11, 29, 12, 0, 0, 500_000, tzinfo=UTC)),
        (b"20261129120000.1234569Z", datetime(2026, 11, 29, 12, 0, 0, 123_456, tzinfo=UTC)),
    ],
)
def test_a_time(content: bytes, time: datetime) -> None:
    assert parse(tlv(0x18, content)).time() == time


@pytest.mark.parametrize(
    "content",
    [
        b"20261129120000", b"202611291200Z", b"20261129120000+0000", b"20261129120000.Z",
        b"20261129120000.50Z", b"20261329120000Z", b"20261129120060Z", b"20261129120000,5Z", b"",
        "２0261129120000Z".encode(),
    ],
)  # fmt: skip
def test_a_time_that_is_not_der(content: bytes) -> None:
    with pytest.raises(DerFault, match="GeneralizedTime"):
        parse(tlv(0x18, content)).time()


def _deep(levels: int) -> bytes:
    data = b""
    for _ in range(levels):
        data = seq(data)
    return data


BAD = {
    "nothing": (b"", "cut short"),
    "a tag alone": (b"\x30", "cut short"),
    "content cut short": (b"\x04\x02x", "cut short"),
    "a child beyond its parent": (b"\x30\x02\x04\x01x", "cut short"),
    "bytes after the end": (b"\x05\x00\x00", "after the end"),
    "an indefinite length": (b"\x30\x80\x00\x00", "indefinite"),
    "a long length that could be short": (b"\x04\x81\x01x", "padded"),
    "a padded length": (b"\x04\x82\x00\x80" + b"x" * 128, "padded"),
    "a length of lengths": (b"\x04\x84\x00\x00\x00\x01x", "too long"),
    "a length cut short": (b"\x04\x82\x01", "cut short"),
    "a high tag number": (b"\x1f\x1f\x00", "above 30"),
    "a constructed octet string": (b"\x24\x00", "only sequences and sets"),
    "a primitive sequence": (b"\x10\x00", "only sequences and sets"),
    "too deep": (_deep(der.MAX_DEPTH + 1), "deeper"),
    "too large": (tlv(4, b"x" * der.MAX_SIZE), "larger"),
}


@pytest.mark.parametrize("name", BAD)
def test_bytes_that_are_not_der(name: str) -> None:
    data, says = BAD[name]
    with pytest.raises(DerFault, match=says):
        parse(data)


def test_as_deep_as_it_may_be() -> None:
    assert parse(_deep(der.MAX_DEPTH)).tag == der.SEQUENCE


@pytest.mark.parametrize("content", [b"", b"\x00\x7f", b"\xff\x80"])
def test_an_integer_that_is_empty_or_padded(content: bytes) -> None:
    with pytest.raises(DerFault, match="integer"):
        parse(tlv(2, content)).integer()
    assert parse(tlv(2, b"\x00\x80")).integer() == 128


@pytest.mark.parametrize("content", [b"", b"\x80\x01", b"\x2a\x86"])
def test_an_object_identifier_that_is_not_one(content: bytes) -> None:
    with pytest.raises(DerFault, match="object identifier"):
        parse(tlv(6, content)).oid()


def test_a_value_of_another_kind() -> None:
    with pytest.raises(DerFault, match="belongs"):
        parse(integer(1)).octets()
    with pytest.raises(DerFault, match="boolean"):
        parse(tlv(1, b"\x01")).boolean()
    fields = parse(seq(integer(1))).sequence()
    with pytest.raises(DerFault, match="unexpected"):
        fields.end()
    fields.take()
    with pytest.raises(DerFault, match="too early"):
        fields.take()
