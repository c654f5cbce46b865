"""Each file holds the signature of whom it names."""

from pathlib import Path
from types import ModuleType

STUDY = "signed"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/cosign/"


def apply(study: Path, tools: ModuleType) -> None:
    bob, cyd = (study / f"seal/cosign/{who}@example.org.sig" for who in ("bob", "cyd"))
    kept = bob.read_bytes()
    bob.write_bytes(cyd.read_bytes())
    cyd.write_bytes(kept)
