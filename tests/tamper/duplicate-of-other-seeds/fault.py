"""A second result is of the sealed seeds, or there is nothing to compare."""

from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "00000.duplicate-2"


def apply(study: Path, tools: ModuleType) -> None:
    def change(lines: list[bytes]) -> None:
        lines[7] = lines[7].replace(b'"seed":"', b'"seed":"1')

    tries.second_result(study, change)
