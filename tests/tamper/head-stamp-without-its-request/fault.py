"""Without the request nobody can hold the token's nonce against it."""

from pathlib import Path
from types import ModuleType

import lives_heads

STUDY = "heads"
AT = "analysed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "stamps/"


def apply(study: Path, tools: ModuleType) -> None:
    (lives_heads.folders(study)[-1] / "timestamp.tsq").unlink()
    lives_heads.commit(study)
