"""A seal that was committed with entries after it may be younger than what they tell of."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "first"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "later entries"


def apply(study: Path, tools: ModuleType) -> None:
    seals.add(study, "deviation", {"about": [], "text": "Seen before it was sealed."}, "ada")
    sealed = tools.git(study, "log", "--format=%H", "--diff-filter=A", "--", "seal/manifest.json")
    message = tools.git(study, "log", "-1", "--format=%B")
    tools.git(study, "reset", "-q", "--soft", f"{sealed}~1")
    tools.git(study, "commit", "-q", "-m", message)
    tools.git(study, "tag", "-f", "-a", "-m", "Sealed", "prereg/coin/sealed")
