"""The validator with its short cuts says what the library says without them."""

from __future__ import annotations

import copy
import functools
import json
from typing import Any

import jsonschema
import pytest

from prereg.codec import schema as codec
from prereg.codec.schema import SchemaViolation, schema_folder, validate

SCHEMAS = sorted(p.name.removesuffix(".schema.json") for p in schema_folder().glob("*.schema.json"))


@functools.cache
def plain(name: str) -> Any:
    """The library's own validator, with our patterns."""
    value = json.loads((schema_folder() / f"{name}.schema.json").read_bytes())
    keywords = {"pattern": codec._pattern}
    return jsonschema.validators.extend(jsonschema.Draft202012Validator, keywords)(value)


def said(error: Any) -> tuple[str, list[Any]] | None:
    return None if error is None else (error.message, list(error.absolute_path))


def damaged(value: Any) -> list[Any]:
    """Copies of a value with one key lost, one added, or one text or number changed, at every place."""
    out: list[Any] = []
    if isinstance(value, dict):
        for key, inner in value.items():
            out.append({k: v for k, v in value.items() if k != key})
            out += [{**value, key: worse} for worse in damaged(inner)]
        out.append({**value, "more": 1})
    elif isinstance(value, list):
        for at, inner in enumerate(value[:3]):
            out += [[*value[:at], worse, *value[at + 1 :]] for worse in damaged(inner)]
    elif isinstance(value, str):
        out += [value + "\n", 7]
    else:
        out.append("x")
    return out


@pytest.mark.parametrize("name", SCHEMAS)
def test_it_refuses_the_same_for_the_same_reason(name: str) -> None:
    vectors = json.loads((schema_folder() / "vectors" / f"{name}.vectors.json").read_bytes())["vectors"]
    values = [v["value"] for v in vectors]
    whole = next(v["value"] for v in vectors if v["valid"])
    refused = 0
    for value in [*values, *damaged(copy.deepcopy(whole))[:300]]:
        expected = said(codec._deepest(plain(name).iter_errors(value)))
        assert said(codec._deepest(codec._validator(name).iter_errors(value))) == expected
        refused += expected is not None
    assert refused > len(values) // 2


def test_what_matches_two_alternatives_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = {"type": "object", "properties": {"kind": {"const": "a"}}, "required": ["kind"]}
    monkeypatch.setattr(codec, "loads", lambda *_, **__: {"oneOf": [twice, twice]})
    codec._validator.cache_clear()
    try:
        with pytest.raises(SchemaViolation, match="valid under each"):
            validate({"kind": "a"}, "seeds", where="x")
    finally:
        codec._validator.cache_clear()
