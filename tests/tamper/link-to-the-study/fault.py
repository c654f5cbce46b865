"""A link to a study does not free it of the neighbours in its own repository, whose seeds it shares."""

import shutil
from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("collect", "auditor")
NAMED = "twin"


def apply(study: Path, tools: ModuleType) -> Path:
    tools.sibling(study, "twin")
    repository = study.parent.parent
    other = repository.parent / "elsewhere"
    (other / "studies").mkdir(parents=True)
    shutil.copytree(repository / "trust", other / "trust")
    tools.git(other, "init", "-q")
    (other / "studies" / study.name).symlink_to(study)
    return other / "studies" / study.name
