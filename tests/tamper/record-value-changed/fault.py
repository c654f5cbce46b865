"""Collector and author change one told value and sign everything anew; the decisions do not follow."""

import json
from pathlib import Path
from types import ModuleType

import forge

STUDY = "second"
AT = "analysed"
CAUGHT_BY = ("auditor",)
NAMED = "/records/"


def apply(study: Path, tools: ModuleType) -> None:
    def otherwise(lines: list[bytes]) -> list[bytes]:
        value = json.loads(lines[0])
        value["record"][0]["values"][0] = -7
        return [forge.canonical(value), *lines[1:]]

    forge.shard(study, otherwise)
    forge.head(study, {}, "ada")
    forge.amend(study)
