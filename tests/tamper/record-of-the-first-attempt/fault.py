"""Records of a failed attempt are not passed off as the second's."""

from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "attempt-2/00001"


def apply(study: Path, tools: ModuleType) -> None:
    tries.rewrite(study, f"{tries.TWICE}/00001", lambda text: text.replace(b'"attempt":2', b'"attempt":1'))
