"""The ledger ends one entry earlier, with the head and signature that it had then; git remembers more."""

import shutil
from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    for name in ("ledger.jsonl", "ledger.head.json", "ledger.head.json.sig"):
        (study / name).write_text(tools.git(study, "show", f"HEAD~1:./{name}") + "\n")
    shutil.rmtree(study / "audit")
