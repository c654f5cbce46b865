"""Nothing unknown may lie where trust is looked for."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/allowed_signers"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "seal/allowed_signers").write_text("x\n")
