"""The plan names the one before it, not the one that its author likes better."""

import shutil
from pathlib import Path
from types import ModuleType

import forge
import seals

STUDY = "signed"
AT = "amended"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    first = seals.earlier(study).name
    shutil.rmtree(seals.earlier(study, 1))
    forge.manifest(study, lambda value: value.update(amends=first))
    signed = tools.sha((study / f"{seals.MANIFEST}.sig").read_bytes())
    body = {"seal": seals.seal_of(study), "previous": first, "signature_sha256": signed}
    seals.again(study, lambda found: found[-1]["body"].update(body), "ada")
