"""A study that used the same seeds is still there when only its seeds.json is gone."""

import shutil
from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("auditor",)
NAMED = "twin/seeds.json"


def apply(study: Path, tools: ModuleType) -> None:
    tools.sibling(study, "twin")
    shutil.copytree(study / "records", study.parent / "twin" / "records")
    shutil.copy(study / "ledger.jsonl", study.parent / "twin" / "ledger.jsonl")
    (study.parent / "twin" / "seeds.json").unlink()
