"""Collector and author drop a position of a record and sign it all anew; the decisions do not follow."""

import json
from pathlib import Path
from types import ModuleType

import forge

STUDY = "second"
AT = "analysed"
CAUGHT_BY = ("auditor",)
NAMED = "/records/"


def apply(study: Path, tools: ModuleType) -> None:
    def shorter(lines: list[bytes]) -> list[bytes]:
        value = json.loads(lines[0])
        value["record"].pop()
        return [forge.canonical(value), *lines[1:]]

    forge.shard(study, shorter)
    forge.head(study, {}, "ada")
    forge.amend(study)
