"""The thirtieth of February bounds nothing."""

from pathlib import Path
from types import ModuleType

import forge

AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    forge.entries(study, lambda found: found[-1].update(time="2027-02-30T12:00:00.000000+00:00"))
