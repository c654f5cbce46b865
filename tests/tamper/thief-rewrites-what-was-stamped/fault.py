"""A thief who decides otherwise under the author's key is held against the stamp of what was decided."""

from pathlib import Path
from types import ModuleType

import forge
import lives_heads
import seals

STUDY = "heads"
AT = "analysed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "stamps/"


def apply(study: Path, tools: ModuleType) -> None:
    forge.decisions(study, forge.of("fair", verdict="FAILS"))
    seals.revoke(study, "ada", "compromised", "2099-01-01T00:00:00+00:00")
    lives_heads.commit(study)
