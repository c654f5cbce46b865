"""A value that overflows is at least as great as every threshold."""

from pathlib import Path
from types import ModuleType

import forge

AT = "collected"
CAUGHT_BY = ("verify", "analyse", "auditor")
NAMED = "main.fair.new/00000"


def apply(study: Path, tools: ModuleType) -> None:
    forge.record(study, b'"outcome":{"value":"tails"}', b'"outcome":{"value":1e400}')
