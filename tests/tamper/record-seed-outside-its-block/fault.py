"""Seeds that the unit did not reserve are somebody else's."""

import re
from pathlib import Path
from types import ModuleType

import forge

AT = "collected"
CAUGHT_BY = ("verify", "analyse", "auditor")
NAMED = "main.fair.new/00000"


def apply(study: Path, tools: ModuleType) -> None:
    def shifted(lines: list[bytes]) -> list[bytes]:
        return [re.sub(rb'"seed":"', b'"seed":"7', line) for line in lines]

    forge.shard(study, shifted)
