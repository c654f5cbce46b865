"""Once a study has a ledger, seeds that cannot be read may not pass for none."""

import shutil
from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("auditor",)
NAMED = "twin/seeds.json"


def apply(study: Path, tools: ModuleType) -> None:
    tools.sibling(study, "twin")
    shutil.copy(study / "ledger.jsonl", study.parent / "twin" / "ledger.jsonl")
    (study.parent / "twin" / "seeds.json").write_text('{"blocks": []}')
