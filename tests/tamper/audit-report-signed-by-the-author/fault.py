"""The report's signature is a reviewer's."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "report.json.sig"


def apply(study: Path, tools: ModuleType) -> None:
    tools.sign(study, "audit/report.json", "ada", "prereg-audit")
