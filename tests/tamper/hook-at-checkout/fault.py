"""A hook of the repository's own runs after git has handed out what was committed, and alters it."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "coin.py"


def apply(study: Path, tools: ModuleType) -> None:
    hook = study.parent.parent / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nsed -i s/heads/tails/ '{study}/coin.py'\n")
    hook.chmod(0o755)
    (study / "coin.py").unlink()
    tools.git(study, "checkout", "-q", "--", "coin.py")
    assert "tails" in (study / "coin.py").read_text()
    hook.unlink()
