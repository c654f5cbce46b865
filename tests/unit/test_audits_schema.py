"""The small validator: every keyword of schemas/v1, and no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from audits.jsonc import parse
from audits.schema import Schema, SchemaFault

SCHEMAS = sorted((Path(__file__).resolve().parents[2] / "schemas" / "v1").glob("*.schema.json"))

ROWS: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    ({"type": "integer"}, [0, -3], [True, 1.5, "1", None]),
    ({"type": "number"}, [0, 1.5], [False, "1"]),
    ({"type": ["string", "null"]}, ["", None], [0, False]),
    ({"type": "object"}, [{}], [[]]),
    ({"const": 1}, [1], [True, 2, "1"]),
    ({"const": True}, [True], [1]),
    ({"enum": ["a", 1]}, ["a", 1], ["b", True]),
    ({"pattern": "^[0-9]{2}$"}, ["12", 7], ["123", "12\n", "\n12"]),
    ({"minLength": 1, "maxLength": 2}, ["a", "\U0001f600b"], ["", "abc"]),
    ({"minimum": 0, "maximum": 1}, [0, 1, 0.5], [-1e-9, 1.1]),
    ({"exclusiveMinimum": 0, "exclusiveMaximum": 1}, [0.5], [0, 1]),
    ({"minItems": 1, "maxItems": 2}, [[1]], [[], [1, 2, 3]]),
    ({"uniqueItems": True}, [[1, True, "1"], [[1], [2]]], [[1, 1], [{"a": 1}, {"a": 1}]]),
    ({"items": {"type": "string"}}, [[], ["a"]], [["a", 1]]),
    ({"required": ["a"]}, [{"a": None}], [{}]),
    ({"properties": {"a": {"type": "null"}}, "additionalProperties": False}, [{}], [{"a": 1}, {"b": None}]),
    ({"additionalProperties": {"type": "null"}}, [{"x": None}], [{"x": 1}]),
    ({"propertyNames": {"pattern": "^a$"}}, [{"a": 1}], [{"b": 1}]),
    ({"anyOf": [{"const": 1}, {"type": "integer"}]}, [1, 2], ["a"]),
    ({"oneOf": [{"const": 1}, {"type": "integer"}]}, [2], [1, "a"]),
    ({"$ref": "#/$defs/a"}, [], []),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "+".join(row[0]))
def test_keywords(row: tuple[dict[str, Any], list[Any], list[Any]]) -> None:
    schema, good, bad = row
    if "$ref" in schema:
        schema, good, bad = {"$defs": {"a": {"const": 1}}, "items": schema}, [[1]], [[2]]
    for value in good:
        assert Schema(schema).first_wrong(value) is None, value
    for value in bad:
        assert Schema(schema).first_wrong(value) is not None, value


@pytest.mark.parametrize(
    "schema",
    [
        {"format": "date"},
        {"items": {"dependentRequired": {}}},
        {"$ref": "#/$defs/a", "type": "string"},
        {"$ref": "other.json"},
        {"oneOf": [{"not": {}}]},
        {"properties": {"a": {"if": {}}}},
        {"pattern": "a$b"},
        {"items": 3},
    ],
)
def test_anything_unknown_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(SchemaFault):
        Schema(schema)


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_every_schema_is_understood(path: Path) -> None:
    assert Schema(parse(path.read_bytes())).first_wrong([]) is not None


def test_a_wrong_value_is_named_by_its_pointer() -> None:
    item = {"oneOf": [{"type": "object", "required": ["x"]}, {"type": "null"}]}
    schema = Schema({"properties": {"a": {"items": item}}})
    assert schema.first_wrong({"a": [None, {}]}) == ("/a/1", "misses 'x'")
