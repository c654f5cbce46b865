"""A manifest that forgets what it amends is still the ledger's last seal."""

from pathlib import Path
from types import ModuleType

import forge
import seals

STUDY = "signed"
AT = "amended"
CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/lineage"


def apply(study: Path, tools: ModuleType) -> None:
    forge.manifest(study, lambda value: value.pop("amends"))
    signed = tools.sha((study / f"{seals.MANIFEST}.sig").read_bytes())
    body = {"seal": seals.seal_of(study), "signature_sha256": signed}
    seals.again(study, lambda found: found[-1]["body"].update(body), "ada")
