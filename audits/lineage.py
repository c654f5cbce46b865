"""Amendments (section 19): the seals of a study from its first to the present one, and what is kept of them.

The chain is step 2; its signatures are step 4.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from audits.fault import Fault, Found
from audits.load import Folder
from audits.schema import Schema
from audits.seal import MANIFEST, check_paths, sums

LINEAGE = "seal/lineage/"
REQUEST, RESPONSE = "timestamp.tsq", "timestamp.tsr"
COSIGN = "cosign/"
_REQUIRED = ("manifest.json", "manifest.json.sig", "SHA256SUMS")
_INSIDE = re.compile(r"manifest\.json(\.sig)?|SHA256SUMS|timestamp\.ts[qr]|cosign/[^/]+\.sig")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """One seal of the lineage."""

    digest: str
    manifest: dict[str, Any]
    folder: str = "seal/"
    """Where its files lie, with a final slash."""

    @property
    def path(self) -> str:
        """Its manifest."""
        return f"{self.folder}manifest.json"

    @property
    def signature(self) -> str:
        """Its author's signature."""
        return f"{self.folder}manifest.json.sig"


def load_lineage(folder: Folder, manifest: dict[str, Any], schema: Schema, found: Found) -> list[Seal]:
    """The seals that lead to the present one by ``amends``, the first one first; a gap is a fault."""
    seals = [Seal(digest=folder.read(MANIFEST).digest, manifest=manifest)]
    while (before := seals[0].manifest.get("amends")) is not None:
        if any(seal.digest == before for seal in seals):
            found.fault("amends itself", file=seals[0].path, pointer="/amends")
            break
        try:
            seals.insert(0, _load(folder, before, seals[0], schema, found))
        except Fault as fault:
            found.faults.append(fault)
            break
    _check_nothing_else(folder, seals, found)
    return seals


def _load(folder: Folder, digest: str, after: Seal, schema: Schema, found: Found) -> Seal:
    home = f"{LINEAGE}{digest}/"
    for name in _REQUIRED:
        if not folder.has(home + name):
            raise Fault("missing: it is kept of a seal that was amended", file=home + name)
    seal = Seal(digest=digest, manifest=folder.machine(home + "manifest.json"), folder=home)
    schema.check(seal.manifest, seal.path)
    if folder.read(seal.path).digest != digest:
        raise Fault("its bytes are not those of the seal that was amended", file=seal.path)
    check_paths(seal.manifest, seal.path, found)
    for key in ("study", "rules"):
        if seal.manifest[key] != after.manifest[key]:
            found.fault("an amendment does not change it", file=after.path, pointer=f"/{key}")
    if folder.read(f"{home}SHA256SUMS").data != sums(seal.manifest, digest):
        found.fault("does not say what its manifest says", file=f"{home}SHA256SUMS")
    if folder.has(home + REQUEST) != folder.has(home + RESPONSE):
        found.fault("has a request or a response, and not both", file=home + REQUEST)
    found.applied += 1
    return seal


def _check_nothing_else(folder: Folder, seals: list[Seal], found: Found) -> None:
    homes = [seal.folder for seal in seals if seal.folder.startswith(LINEAGE)]
    for path, entry in folder.entries.items():
        if path.startswith(LINEAGE) and entry.kind != "folder":
            home = next((home for home in homes if path.startswith(home)), None)
            if home is None or not _INSIDE.fullmatch(path.removeprefix(home)):
                found.fault("is of no seal that the present one amends", file=path)


def compare_lineage(seals: list[Seal], entries: list[dict[str, Any]] | None, found: Found) -> None:
    """The ledger seals and amends exactly the seals of the lineage, in order; None if it cannot be read."""
    if entries is None:
        if len(seals) > 1:
            what = "cannot be held against the ledger, which cannot be read"
            found.fault(what, file=MANIFEST, pointer="/amends")
        return
    told = [entry["body"]["seal"] for entry in entries if entry["type"] in ("sealed", "amended")]
    if (len(seals) > 1 or len(told) > 1) and told != [seal.digest for seal in seals]:
        what = f"its chain of {len(seals)} is not what the ledger's `sealed` and `amended` entries name"
        found.fault(what, file=MANIFEST, pointer="/amends")
