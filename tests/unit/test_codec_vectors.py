"""prereg against the shared test vectors (the auditor runs the same files in its own tests)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prereg.codec import canonical
from prereg.codec.schema import AuthoredFileInvalid, SchemaViolation, schema_folder, validate

FOLDER = schema_folder() / "vectors"
FILES = sorted(FOLDER.glob("*.vectors.json"))
SCHEMAS = sorted(p.name.removesuffix(".schema.json") for p in schema_folder().glob("*.schema.json"))


def rows(path: Path) -> list[Any]:
    return [pytest.param(v, id=v["id"]) for v in json.loads(path.read_text())["vectors"]]


def test_every_schema_has_vectors_of_both_kinds() -> None:
    for name in SCHEMAS:
        vectors = json.loads((FOLDER / f"{name}.vectors.json").read_text())["vectors"]
        assert {v["valid"] for v in vectors} == {True, False}, name


@pytest.mark.parametrize("name", SCHEMAS)
def test_schema_vectors(name: str) -> None:
    for vector in json.loads((FOLDER / f"{name}.vectors.json").read_text())["vectors"]:
        try:
            validate(vector["value"], name, where=vector["id"])
            accepted = True
        except SchemaViolation as error:
            accepted = False
            assert error.where is not None and error.where.startswith(vector["id"] + "#")
        assert accepted == vector["valid"], f"{vector['id']}: {vector['comment']}"


@pytest.mark.parametrize("vector", rows(FOLDER / "json.vectors.json"))
def test_json_vectors(vector: dict[str, Any]) -> None:
    data = vector["text"].encode("utf-8", "surrogatepass")
    if vector["valid"]:
        value = canonical.loads(data, where="vector")
        assert canonical.dumps(value).decode() == vector["canonical"]
    else:
        with pytest.raises(canonical.MalformedJson, match="vector"):
            canonical.loads(data, where="vector")


def test_an_authored_file_is_refused_as_usage() -> None:
    with pytest.raises(AuthoredFileInvalid) as caught:
        validate({}, "seeds", where="seeds.json", authored=True)
    assert caught.value.exit_code == 2


def test_a_machine_file_must_be_canonical() -> None:
    assert canonical.loads_machine(b'{"a":1}\n', where="x") == {"a": 1}
    for data in (b'{"a":1}', b'{"a": 1}\n', b'{"a":1.0}\n', b'{"b":1,"a":2}\n', b'{"a":1}\r\n'):
        with pytest.raises(canonical.MalformedJson):
            canonical.loads_machine(data, where="x")
    with pytest.raises(canonical.MalformedJson, match="CRLF"):
        canonical.loads_machine(b'{"a":1}\r\n', where="x")
