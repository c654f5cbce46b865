"""A commit that says it belongs to the study names its seal."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "Prereg-Seal"


def apply(study: Path, tools: ModuleType) -> None:
    text = "More\n\nPrereg-Study: coin\nPrereg-Seal: " + "0" * 64 + "\nPrereg-Ledger-Head: " + "0" * 64
    tools.git(study, "commit", "-q", "--allow-empty", "-m", text)
