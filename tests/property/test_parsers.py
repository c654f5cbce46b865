"""Any bytes to any parser: its own error, or a value; never another exception."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parent))

from parsers import PARSERS, SCHEMAS, try_one
from real_stamps import STAMPS, TREES, edited
from real_tokens import ARMORED, edited_signature

from prereg.codec import canonical

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 2**53) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
BYTES = (
    st.binary(max_size=120)
    | st.text(max_size=80).map(lambda text: text.encode("utf-8", "surrogatepass"))
    | JSON.map(lambda value: json.dumps(value).encode() + b"\n")
)


@pytest.mark.parametrize("name", PARSERS)
@settings(max_examples=60)
@given(data=BYTES)
def test_any_bytes(name: str, data: bytes) -> None:
    try_one(name, data)


def _valid() -> dict[str, list[Any]]:
    """The valid values of every schema that has vectors."""
    found = {}
    for path in sorted((SCHEMAS / "vectors").glob("*.vectors.json")):
        vectors = json.loads(path.read_text("utf-8"))["vectors"]
        found[path.name.partition(".")[0]] = [v["value"] for v in vectors if v["valid"] and "value" in v]
    return found


VALID = _valid()
SCHEMA = {"meta": "shard-meta", "ledger": "ledger-entry"}
"""The schema of what a parser is named after, where it has another name."""


def _schema_of(name: str) -> str:
    kind = name.split(" ", 1)[1].removesuffix(" schema").removesuffix(" as a value")
    return SCHEMA.get(kind, kind)


@pytest.mark.parametrize("name", [name for name in PARSERS if VALID.get(_schema_of(name))])
@settings(max_examples=80)
@given(data=st.data())
def test_bytes_near_a_valid_file(name: str, data: st.DataObject) -> None:
    values = VALID[_schema_of(name)]
    text = canonical.dumps(data.draw(st.sampled_from(values))) + b"\n"
    at, cut = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 4))
    new = data.draw(st.binary(max_size=3) | st.sampled_from([b"null", b"[]", b"{}", b'"', b"-", b"99"]))
    try_one(name, text[:at] + new + text[at + cut :])


STAMP_PARSERS = ("prereg time stamp", "auditor time stamp")


@pytest.mark.parametrize("name", STAMP_PARSERS)
def test_the_real_stamps_are_verified(name: str) -> None:
    assert len(STAMPS.responses) == 4
    times = [PARSERS[name].parse(response) for response in STAMPS.responses]
    assert times == [PARSERS[name].parse(edited(bytes([n]))) for n in range(4)]


def test_an_edit_without_an_effect_changes_nothing() -> None:
    assert [tree.encoded() for tree in TREES] == STAMPS.responses


@pytest.mark.parametrize("name", STAMP_PARSERS)
@settings(max_examples=250)
@given(data=st.binary(min_size=7, max_size=20))
def test_a_real_stamp_with_other_values(name: str, data: bytes) -> None:
    try_one(name, data)


@pytest.mark.parametrize("name", STAMP_PARSERS)
@settings(max_examples=250)
@given(data=st.data())
def test_bytes_near_a_real_stamp(name: str, data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from(STAMPS.responses))
    at, cut = data.draw(st.integers(0, len(whole))), data.draw(st.integers(0, 4))
    # As many bytes as are cut leave every length right; so the certificates and signatures are read.
    new = data.draw(st.binary(min_size=cut, max_size=cut) | st.binary(max_size=3))
    try_one(name, whole[:at] + new + whole[at + cut :])


TOKEN_PARSERS = [name for name in PARSERS if name.endswith("of a token")]


@pytest.mark.parametrize("name", [name for name in TOKEN_PARSERS if "signature" in name])
def test_the_real_signatures_of_tokens_hold(name: str) -> None:
    assert len(ARMORED) >= 2
    for number, armored in enumerate(ARMORED):
        PARSERS[name].parse(armored)
        PARSERS[name].parse(edited_signature(bytes([number])))


@pytest.mark.parametrize("name", TOKEN_PARSERS)
@settings(max_examples=250)
@given(data=st.binary(min_size=4, max_size=12))
def test_bytes_near_what_a_token_signed(name: str, data: bytes) -> None:
    try_one(name, data)
