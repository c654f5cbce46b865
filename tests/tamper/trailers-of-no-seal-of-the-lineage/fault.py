"""A commit that says it belongs to the study names one of its seals."""

from pathlib import Path
from types import ModuleType

STUDY = "signed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "Prereg-Seal"


def apply(study: Path, tools: ModuleType) -> None:
    head = tools.sha(tools.ledger(study)[-1])
    text = f"More\n\nPrereg-Study: coin\nPrereg-Seal: {'0' * 64}\nPrereg-Ledger-Head: {head}"
    tools.git(study, "commit", "-q", "--allow-empty", "-m", text)
