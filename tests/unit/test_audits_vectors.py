"""The vectors that both sides read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from audits.jsonc import JsonFault, canonical, parse
from audits.schema import Schema

FOLDER = Path(__file__).resolve().parents[2] / "schemas" / "v1"


def _rows() -> list[Any]:
    rows = []
    for path in sorted((FOLDER / "vectors").glob("*.vectors.json")):
        for vector in json.loads(path.read_text("utf-8"))["vectors"]:
            rows.append(pytest.param(path.name.partition(".")[0], vector, id=vector["id"]))
    return rows


@pytest.mark.parametrize(("name", "vector"), _rows())
def test_vector(name: str, vector: dict[str, Any]) -> None:
    if name != "json":
        schema = Schema(parse((FOLDER / f"{name}.schema.json").read_bytes()))
        assert (schema.first_wrong(vector["value"]) is None) is vector["valid"], vector["comment"]
    elif vector["valid"]:
        assert canonical(parse(vector["text"].encode())).decode() == vector["canonical"]
    else:
        with pytest.raises(JsonFault):
            parse(vector["text"].encode())
