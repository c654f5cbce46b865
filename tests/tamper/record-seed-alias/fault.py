"""Seeds that differ above their low 32 bits are one seed to many an engine."""

import re
from pathlib import Path
from types import ModuleType

import forge

AT = "collected"
CAUGHT_BY = ("verify", "analyse", "auditor")
NAMED = "main.fair.new/00000"


def apply(study: Path, tools: ModuleType) -> None:
    def aliased(lines: list[bytes]) -> list[bytes]:
        def up(found: re.Match[bytes]) -> bytes:
            return b'"seed":"%d"' % (int(found[1]) + 2**32)

        return [re.sub(rb'"seed":"([0-9]+)"', up, line) for line in lines]

    forge.shard(study, aliased)
