"""One key under two names is one person."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = {"verify": "both an author", "auditor": "one key"}


def apply(study: Path, tools: ModuleType) -> None:
    p = study.parent.parent / "trust/allowed_signers"

    line = next(line for line in p.read_text().splitlines() if line.startswith("ada@"))
    p.write_text(p.read_text() + line.replace("ada@", "rex@").replace("prereg-seal", "prereg-audit") + "\n")
