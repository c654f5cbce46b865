"""A second that most clocks do not have orders nothing."""

from pathlib import Path
from types import ModuleType

import forge

AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    forge.entries(study, lambda found: found[-1].update(time="2027-12-31T23:59:60.000000+00:00"))
