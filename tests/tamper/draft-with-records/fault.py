"""A study without a seal has no evidence."""

from pathlib import Path
from types import ModuleType

AT = "draft"
EXIT = {"seal": 4}
CAUGHT_BY = ("seal",)
NAMED = "records"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "records/main.fair.new").mkdir(parents=True)
    (study / "records/main.fair.new/00000.meta.json").write_text("{}\n")
