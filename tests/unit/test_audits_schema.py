"""The small validator: every keyword of schemas/v1, and no other."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from audits import rules
from audits.fault import Fault
from audits.jsonc import parse
from audits.load import Folder
from audits.schema import Schema, SchemaFault

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = sorted((ROOT / "schemas" / "v1").glob("*.schema.json"))
OPTIONAL_STOPPING = ROOT / "studies" / "optional-stopping"
"""A study that was sealed with the first edition of the schemas."""

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
    newest = {name: digests[-1] for name, digests in said["schemas"].items()}
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in SCHEMAS}
    assert (said["version"], newest) == (1, digests)
    assert all(len(set(digests)) == len(digests) for digests in said["schemas"].values())


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


def _load(root: Path) -> tuple[rules.Schemas, str]:
    folder = Folder(root / "study")
    try:
        folder.scan()
        return rules.load_schemas(folder)
    finally:
        folder.close()


def _schemas(root: Path) -> rules.Schemas:
    return _load(root)[0]


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


@pytest.mark.parametrize("name", ["leaf", "hypotheses", "revocations"])
def test_a_schema_that_not_all_need_may_be_missing_until_it_is_used(
    placed: Path, tmp_path: Path, name: str
) -> None:
    (placed / f"{name}.schema.json").unlink()
    schemas = _schemas(tmp_path)
    assert name not in schemas and "record" in schemas
    with pytest.raises(Fault, match="missing") as caught:
        _ = schemas[name]
    assert caught.value.file.endswith(f"schemas/v1/{name}.schema.json")


@pytest.fixture
def first_edition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The schemas of the first edition, sealed in a study's own folder, with nothing beside the auditor."""
    (tmp_path / "audits").mkdir()
    monkeypatch.setattr(rules, "FILE", Path(shutil.copy(rules.FILE, tmp_path / "audits")))
    sealed = tmp_path / "study" / "code" / "schemas" / "v1"
    shutil.copytree(OPTIONAL_STOPPING / "code" / "schemas" / "v1", sealed)
    return sealed


def test_every_edition_is_taken(first_edition: Path, tmp_path: Path) -> None:
    said = json.loads(rules.FILE.read_bytes())["schemas"]
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in first_edition.iterdir()}
    assert digests == {name: said[name][0] for name in said if name not in rules.OPTIONAL}
    assert set(_schemas(tmp_path)) == {name.removesuffix(".schema.json") for name in digests}
    shutil.copy(next(p for p in SCHEMAS if p.name == "protocol.schema.json"), first_edition)
    assert "protocol" in _schemas(tmp_path)


def test_a_first_edition_knows_no_exact_stage(first_edition: Path, tmp_path: Path) -> None:
    schemas = _schemas(tmp_path)
    stage = {"id": "e", "purpose": "discovery", "configurations": ["c"], "channel": "exact"}
    protocol = json.loads((OPTIONAL_STOPPING / "protocol.json").read_bytes())
    schemas["protocol"].check(protocol)
    with pytest.raises(Fault, match="unknown property"):
        schemas["protocol"].check(protocol | {"stages": [stage]})


@pytest.mark.parametrize(
    "text",
    [
        "", "{}", '{"version": 2, "schemas": {}}', '{"version": 1, "schemas": []}',
        '{"version": 1, "schemas": {"head.schema.json": []}}',
        '{"version": 1, "schemas": {"head.schema.json": "00"}}',
    ],
)  # fmt: skip
def test_rules_that_are_not_these_are_refused(placed: Path, tmp_path: Path, text: str) -> None:
    rules.FILE.write_text(text)
    with pytest.raises(Fault) as caught:
        _load(tmp_path)
    assert caught.value.file.endswith("rules.json")


@pytest.mark.parametrize("alone", [False, True], ids=["in place", "copied alone"])
def test_a_study_sealed_with_the_first_edition_still_agrees(alone: bool, tmp_path: Path) -> None:
    auditor, study = ROOT / "audits", OPTIONAL_STOPPING
    options = [] if (ROOT / ".git").exists() else ["--without-history"]
    if alone:
        auditor = Path(shutil.copytree(auditor, tmp_path / "audits"))
        study = Path(shutil.copytree(study, tmp_path / "studies" / "optional-stopping"))
        shutil.copytree(ROOT / "trust", tmp_path / "trust")
        options = ["--without-history"]
    command = [sys.executable, "-I", str(auditor), str(study), "--json", *options]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    report = json.loads(done.stdout)
    assert report["result"] == "AGREES"
    where = "schemas of the study's code/schemas/v1" if alone else "schemas beside the auditor"
    assert where in report["steps"][4]["detail"]
