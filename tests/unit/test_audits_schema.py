"""The small validator: every keyword of schemas/v1, and no other."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from audits import rules
from audits.fault import Fault
from audits.jsonc import parse
from audits.load import Folder
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


def test_rules_json_has_the_digest_of_every_schema_of_the_repository() -> None:
    said = json.loads(rules.FILE.read_bytes())
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in SCHEMAS}
    assert said == {"version": 1, "schemas": digests}


PLACES = {
    "schemas/v1": "schemas beside the auditor",
    "prereg/_data/schemas/v1": "schemas installed with the auditor",
    "study/code/schemas/v1": "schemas of the study's code/schemas/v1",
}


@pytest.fixture(params=PLACES)
def placed(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The schemas in one of the places where the auditor looks, below ``tmp_path``."""
    (tmp_path / "audits").mkdir()
    (tmp_path / "study").mkdir()
    monkeypatch.setattr(rules, "FILE", Path(shutil.copy(rules.FILE, tmp_path / "audits")))
    place: Path = tmp_path / request.param
    place.mkdir(parents=True)
    for path in SCHEMAS:
        shutil.copy(path, place)
    return place


def _load(root: Path) -> tuple[set[str], str]:
    folder = Folder(root / "study")
    try:
        folder.scan()
        schemas, where = rules.load_schemas(folder)
        return set(schemas), where
    finally:
        folder.close()


def test_schemas_are_found_in_three_places(placed: Path, tmp_path: Path) -> None:
    names, where = _load(tmp_path)
    assert {f"{name}.schema.json" for name in names} == {path.name for path in SCHEMAS}
    assert where == PLACES[placed.relative_to(tmp_path).as_posix()]


def test_a_schema_of_other_bytes_is_refused_wherever_it_is(placed: Path, tmp_path: Path) -> None:
    file = placed / "record.schema.json"
    file.write_bytes(file.read_bytes() + b"\n")
    with pytest.raises(Fault, match="not the schema of rules version 1") as caught:
        _load(tmp_path)
    assert caught.value.file.endswith("record.schema.json")


def test_a_schema_that_is_not_there_is_named(placed: Path, tmp_path: Path) -> None:
    (placed / "record.schema.json").unlink()
    with pytest.raises(Fault) as caught:
        _load(tmp_path)
    assert caught.value.file.endswith("record.schema.json")


@pytest.mark.parametrize("text", ["", "{}", '{"version": 2, "schemas": {}}', '{"version": 1, "schemas": []}'])
def test_rules_that_are_not_these_are_refused(placed: Path, tmp_path: Path, text: str) -> None:
    rules.FILE.write_text(text)
    with pytest.raises(Fault) as caught:
        _load(tmp_path)
    assert caught.value.file.endswith("rules.json")
