"""Git finds a trailer by its name in any case: one in lower case speaks for the study too."""

from pathlib import Path
from types import ModuleType

STUDY = "signed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "Prereg-Seal"


def apply(study: Path, tools: ModuleType) -> None:
    head = tools.sha(tools.ledger(study)[-1])
    text = f"More\n\nprereg-study: coin\nprereg-seal: {'0' * 64}\nprereg-ledger-head: {head}"
    tools.git(study, "commit", "-q", "--allow-empty", "-m", text)
