"""What is told of the lines is what they are."""

from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = {"verify": "00000.duplicate-2", "auditor": "lines_sha256"}


def apply(study: Path, tools: ModuleType) -> None:
    tries.second_result(study, lambda lines: None, lines_sha256="0" * 64)
