"""The collector does not start before enough have signed."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "amended"
EXIT = {"collect": 4}
CAUGHT_BY = ("collect",)
NAMED = "1 of 2 signatures"


def apply(study: Path, tools: ModuleType) -> None:
    seals.stamp(study)
