"""No variable of the reader may point git at another history than the study's own."""

import shutil
from pathlib import Path
from types import ModuleType

ENV = {"GIT_DIR": "{home}/good.git"}
CAUGHT_BY = ("verify", "auditor")
NAMED = {"verify": "no ancestor", "auditor": "records/"}


def apply(study: Path, tools: ModuleType) -> None:
    repository = study.parent.parent
    shutil.copytree(repository / ".git", repository.parent / "good.git")
    tools.rewrite_history(study)
