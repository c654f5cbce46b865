"""Whoever signs after the data was seen has agreed to no plan."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    sig = (study / "seal/cosign/cyd@example.org.sig").read_bytes()
    seals.add(study, "cosigned", {"signature_sha256": tools.sha(sig)}, "cyd")
