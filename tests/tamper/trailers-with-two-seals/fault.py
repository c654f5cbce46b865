"""A commit that says it belongs to the study names one seal, not two."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "Prereg-Seal"


def apply(study: Path, tools: ModuleType) -> None:
    head, seal = tools.sha(tools.ledger(study)[-1]), seals.seal_of(study)
    first = seals.earlier(study).name
    text = (
        f"More\n\nPrereg-Study: coin\nPrereg-Seal: {seal}\nPrereg-Seal: {first}\nPrereg-Ledger-Head: {head}"
    )
    tools.git(study, "commit", "-q", "--allow-empty", "-m", text)
