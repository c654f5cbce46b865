"""A leaf of a tree has no record beside it."""

from pathlib import Path
from types import ModuleType

import forge

STUDY = "second"
AT = "collected"
CAUGHT_BY = ("verify", "analyse", "auditor")
NAMED = "walked.other.on/00000"


def apply(study: Path, tools: ModuleType) -> None:
    tools.rewrite_tree(study, lambda leaves: leaves[0].update(record=[]))
    tools.relink(study)
    tools.sign(study, "ledger.head.json", "col", "prereg-ledger")
    forge.amend(study)
