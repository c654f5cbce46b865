"""One seed drawn twice is one draw counted twice."""

import re
from pathlib import Path
from types import ModuleType

import forge

AT = "collected"
CAUGHT_BY = ("verify", "analyse", "auditor")
NAMED = "main.fair.new/00000"


def apply(study: Path, tools: ModuleType) -> None:
    def twice(lines: list[bytes]) -> list[bytes]:
        first, second = (re.search(rb'"seed":"([0-9]+)"', lines[at])[1] for at in (0, 100))  # type: ignore[index]
        return [line.replace(b'"seed":"%b"' % second, b'"seed":"%b"' % first) for line in lines]

    forge.shard(study, twice)
