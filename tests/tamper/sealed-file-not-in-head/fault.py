"""A sealed file that lies here alone is in nobody's clone."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "coin.py"


def apply(study: Path, tools: ModuleType) -> None:
    tools.git(study, "rm", "-q", "--cached", "--", "coin.py")
    tools.git(study, "commit", "-q", "-m", "Not ours to publish")
