"""A filter of the repository's own configuration hands out other bytes than were committed."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "coin.py"


def apply(study: Path, tools: ModuleType) -> None:
    tools.git(study, "config", "filter.turn.smudge", "sed s/heads/tails/")
    tools.git(study, "config", "filter.turn.clean", "sed s/tails/heads/")
    (study.parent.parent / ".git/info/attributes").write_text("*.py filter=turn\n")
    (study / "coin.py").unlink()
    tools.git(study, "checkout", "-q", "--", "coin.py")
