"""A departure that was told stays told: the commit that told it is in the history."""

import subprocess
from pathlib import Path
from types import ModuleType

STUDY = "signed"
AT = "deviated"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger"


def apply(study: Path, tools: ModuleType) -> None:
    for name in ("ledger.jsonl", "ledger.head.json", "ledger.head.json.sig"):
        git = ["git", "show", f"HEAD~1:./{name}"]
        (study / name).write_bytes(subprocess.run(git, cwd=study, capture_output=True, check=True).stdout)
