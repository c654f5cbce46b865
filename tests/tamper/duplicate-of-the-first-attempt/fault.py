"""A second result says of itself which attempt it is of."""

from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "00000.duplicate-2"


def apply(study: Path, tools: ModuleType) -> None:
    def change(lines: list[bytes]) -> None:
        lines[:] = [line.replace(b'"attempt":2', b'"attempt":1') for line in lines]

    tries.second_result(study, change)
