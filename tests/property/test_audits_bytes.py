"""Whatever the bytes: the auditor's parsers raise their own error or return what they write back."""

from __future__ import annotations

import json
import unicodedata

import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from audits.fault import Fault
from audits.jsonc import MAX_INT, JsonFault, canonical, number, parse, parse_machine
from audits.load import inflate
from audits.sshsig import SignatureFault
from audits.sshsig import parse as parse_signature
from audits.trust import parse_signers

TEXT = (
    st.text()
    .map(lambda text: unicodedata.normalize("NFC", text))
    .filter(lambda text: unicodedata.is_normalized("NFC", text))
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_INT, MAX_INT)
    | st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15)
    | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=30,
)


@given(VALUES)
def test_canonical_bytes_read_back_and_write_the_same(value: object) -> None:
    data = canonical(value)
    assert canonical(parse(data)) == data
    assert parse(data) == value
    assert parse_machine(data + b"\n") == value


@given(VALUES)
def test_canonical_bytes_are_those_of_another_serializer(value: object) -> None:
    assert canonical(value) == rfc8785.dumps(value)  # type: ignore[arg-type]


@given(VALUES, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_layout_does_not_matter(value: object, indent: int | str | None, ascii_only: bool) -> None:
    assert parse(json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_reads_back_the_same(value: float) -> None:
    assert float(number(value)) == value


@given(
    st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "surrogatepass"))
)
@example(b'{"":1e9999}')
@example(b"[" * 3000)
def test_the_parser_raises_only_its_own_error(data: bytes) -> None:
    try:
        value = parse(data)
    except JsonFault:
        return
    assert parse(canonical(value)) == value


@given(st.text(alphabet='{}[]",:0123456789.eE+-\\ud8tnfalsr ', max_size=60))
def test_the_parser_raises_only_its_own_error_on_near_json(text: str) -> None:
    try:
        parse(text.encode())
    except JsonFault:
        return
    json.loads(text)


@given(st.binary(max_size=300))
def test_a_signature_raises_only_its_own_error(data: bytes) -> None:
    import base64

    armored = b"-----BEGIN SSH SIGNATURE-----\n%s\n-----END SSH SIGNATURE-----\n"
    for candidate in (data, armored % base64.b64encode(data), armored % base64.b64encode(b"SSHSIG" + data)):
        try:
            parse_signature(candidate)
        except SignatureFault:
            continue


@given(st.text(max_size=100))
def test_allowed_signers_raise_only_a_fault(text: str) -> None:
    try:
        parse_signers(text.encode("utf-8", "surrogatepass"), "allowed_signers")
    except Fault:
        return


@given(st.binary(max_size=100), st.integers(0, 1000))
def test_a_shard_raises_only_a_fault(data: bytes, size: int) -> None:
    for candidate in (data, b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + data):
        try:
            assert len(inflate(candidate, size)) == size
        except Fault:
            continue
