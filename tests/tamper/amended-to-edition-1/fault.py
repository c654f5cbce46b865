"""An amendment keeps the edition: in edition 1 none of this could be asked."""

from pathlib import Path
from types import ModuleType
from typing import Any

import seals

STUDY = "signed"
AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = {"verify": "ledger.jsonl", "auditor": "seal/manifest.json#/amends"}


def apply(study: Path, tools: ModuleType) -> None:
    def older(protocol: dict[str, Any]) -> None:
        for name in ("edition", "signers", "timestamp"):
            del protocol[name]

    seals.amend(study, older)
