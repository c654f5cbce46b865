"""The same, and committed: what was once in the ledger stays in the history."""

import shutil
from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    for name in ("ledger.jsonl", "ledger.head.json", "ledger.head.json.sig"):
        (study / name).write_text(tools.git(study, "show", f"HEAD~1:./{name}") + "\n")
    shutil.rmtree(study / "audit")
    tools.git(study, "add", "-A")
    tools.git(study, "commit", "-q", "-m", "Tidy up")
