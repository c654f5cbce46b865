"""A result that lacks a draw is none."""

from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = {"verify": "#/body/lines", "auditor": "attempt-2/00000"}


def apply(study: Path, tools: ModuleType) -> None:
    tries.second_result(study, lambda lines: lines.pop())
