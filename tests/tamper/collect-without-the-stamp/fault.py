"""The collector does not start while the stamp is owed."""

from pathlib import Path
from types import ModuleType

STUDY = "signed"
AT = "cosigned"
EXIT = {"collect": 4}
CAUGHT_BY = ("collect",)
NAMED = "time stamp"


def apply(study: Path, tools: ModuleType) -> None:
    del study, tools
