"""What came back is what was stored."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "relocated"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    seals.again(study, lambda found: found[-1]["body"]["files"][0].update(sha256="0" * 64), "ada")
