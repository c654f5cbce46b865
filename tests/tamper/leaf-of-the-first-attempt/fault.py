"""Leaves of a failed attempt are not passed off as the second's."""

from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "attempt-2/00000"


def apply(study: Path, tools: ModuleType) -> None:
    name = "records/walked.other.on.attempt-2/00000"
    tries.rewrite(study, name, lambda text: text.replace(b'"attempt":2', b'"attempt":1'))
