"""What the ledger's entries say, held against the seal, the plan and each other (step 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from prereg.codec.canonical import digest
from prereg.errors import VerificationFailed
from prereg.model.plan import Shard
from prereg.model.seal import Entry, Manifest
from prereg.seal.head import ROLES
from prereg.seal.trust import Trust


def check_bodies(
    entries: Sequence[Entry],
    *,
    manifest: Manifest,
    seal: str,
    signature: bytes,
    planned: Mapping[tuple[str, int], Shard],
    trust: Trust,
) -> None:
    """Check every entry of a sound chain. Raises VerificationFailed with the line and the field."""
    stored: set[tuple[str, int]] = set()
    invalid: set[str] = set()
    units = {unit for unit, _ in planned}
    for number, entry in enumerate(entries, 1):
        line = f"ledger.jsonl:{number}#"
        body = entry.body
        if not set(ROLES[entry.type]) & set(trust.roles.get(entry.actor, ())):
            wanted = " or ".join(ROLES[entry.type])
            raise VerificationFailed(f"{entry.actor} has no role {wanted}", where=f"{line}/actor")
        if "seal" in body and body["seal"] != seal:
            raise VerificationFailed("is not this study's seal digest", where=f"{line}/body/seal")
        if "unit" in body and body["unit"] not in units:
            raise VerificationFailed(f"there is no unit {body['unit']}", where=f"{line}/body/unit")
        match entry.type:
            case "sealed":
                _sealed(entry, manifest, signature, line)
            case "collection-started":
                for build, fingerprint in body["environments"].items():
                    if manifest.environments.get(build) != fingerprint:
                        raise VerificationFailed(
                            "is not the sealed environment", where=f"{line}/body/environments/{build}"
                        )
            case "shard-stored":
                place = (body["unit"], body["shard"])
                if place not in planned:
                    raise VerificationFailed("is no shard of the plan", where=f"{line}/body/shard")
                if place in stored:
                    raise VerificationFailed("the shard was stored before", where=f"{line}/body/shard")
                if planned[place].channel == "draws" and body["draws"] != planned[place].draws:
                    raise VerificationFailed(
                        f"the plan says {planned[place].draws} draws", where=f"{line}/body/draws"
                    )
                stored.add(place)
            case "unit-invalid":
                invalid.add(body["unit"])
            case "collection-ended":
                _ended(entry, stored, invalid, planned, line)
            case "analysis" | "audit":
                pass  # held against their files in step 8


def _sealed(entry: Entry, manifest: Manifest, signature: bytes, line: str) -> None:
    if entry.actor != manifest.author.principal:
        raise VerificationFailed("is not the manifest's author", where=f"{line}/actor")
    if entry.body["signature_sha256"] != digest(signature):
        raise VerificationFailed(
            "is not the digest of seal/manifest.json.sig", where=f"{line}/body/signature_sha256"
        )
    if entry.body["commit"] != manifest.commit:
        raise VerificationFailed("is not the manifest's commit", where=f"{line}/body/commit")


def _ended(
    entry: Entry,
    stored: set[tuple[str, int]],
    invalid: set[str],
    planned: Mapping[tuple[str, int], Shard],
    line: str,
) -> None:
    body = entry.body
    if body["stored"] != len(stored):
        raise VerificationFailed(f"{len(stored)} shards are stored up to here", where=f"{line}/body/stored")
    if set(body["invalid"]) != invalid:
        raise VerificationFailed(
            "is not the set of units that are invalid up to here", where=f"{line}/body/invalid"
        )
    rest = [place for place in planned if place[0] not in invalid and place not in stored]
    if body["complete"] and rest:
        unit, shard = rest[0]
        raise VerificationFailed(
            f"is true, but {len(rest)} shards are missing, the first {unit}/{shard:05d}",
            where=f"{line}/body/complete",
        )
