"""A key that may sign ledgers only seals nothing."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "namespace"


def apply(study: Path, tools: ModuleType) -> None:
    p = study.parent.parent / "trust/allowed_signers"
    p.write_text(p.read_text().replace(",prereg-seal", ""))
