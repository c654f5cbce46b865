"""What the ledger's entries say, held against the seal, the plan and each other (step 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from prereg.codec.canonical import digest
from prereg.errors import VerificationFailed
from prereg.model.places import is_complete
from prereg.model.plan import Shard
from prereg.model.seal import EDITION_2, EDITION_3, Entry
from prereg.model.study import Study
from prereg.seal.attempted import Attempted
from prereg.seal.head import ROLES
from prereg.seal.lineage import Sealed
from prereg.seal.manifest import WHERE
from prereg.seal.shard_set import Place
from prereg.seal.trust import Trust
from prereg.store.folder import shard_at
from prereg.store.ledger import parse_time
from prereg.store.remote import public_url


def check_bodies(
    entries: Sequence[Entry],
    *,
    lineage: Sequence[Sealed],
    signatures: Mapping[str, bytes],
    study: Study,
    planned: Mapping[tuple[str, int], Shard],
    trust: Trust,
) -> None:
    """Check every entry of a sound chain. Raises VerificationFailed with the line and the field.

    `lineage` are the seals by their manifests, oldest first, and `signatures` the bytes of theirs.
    """
    manifest = lineage[-1].manifest
    units = Attempted(protocol=study.protocol, planned=planned)
    names = {unit for unit, _ in planned}
    seal = 0
    for number, entry in enumerate(entries, 1):
        line = f"ledger.jsonl:{number}#"
        body = entry.body
        if entry.type in EDITION_2 and not study.protocol.since(2):
            raise VerificationFailed(f"a study of edition 1 has no {entry.type}", where=f"{line}/type")
        if entry.type in EDITION_3 and not study.protocol.since(3):
            what = f"a study of edition {study.protocol.edition or 1} has no {entry.type}"
            raise VerificationFailed(what, where=f"{line}/type")
        if not set(ROLES[entry.type]) & set(trust.roles.get(entry.actor, ())):
            wanted = " or ".join(ROLES[entry.type])
            raise VerificationFailed(f"{entry.actor} has no role {wanted}", where=f"{line}/actor")
        if entry.type == "audit" and entry.actor in study.protocol.named_authors:
            what = f"{entry.actor} is one of the protocol's authors, who do not audit"
            raise VerificationFailed(what, where=f"{line}/actor")
        if entry.type == "amended":
            seal += 1
            if seal == len(lineage):
                raise VerificationFailed(f"no such amendment leads to {WHERE}", where=f"{line}/body/seal")
        if "seal" in body and body["seal"] != lineage[seal].seal:
            raise VerificationFailed("is not this study's seal digest", where=f"{line}/body/seal")
        if "unit" in body and body["unit"] not in names:
            raise VerificationFailed(f"there is no unit {body['unit']}", where=f"{line}/body/unit")
        match entry.type:
            case "sealed" | "amended":
                _sealed(entry, lineage[seal], signatures, line)
            case "collection-started":
                for build in sorted({*manifest.environments, *body["environments"]}):
                    if manifest.environments.get(build) != body["environments"].get(build):
                        raise VerificationFailed(
                            "is not the sealed environment", where=f"{line}/body/environments/{build}"
                        )
                units.take(entry, line)
            case "attempt" | "shard-stored" | "duplicate" | "unit-invalid" | "collection-ended":
                units.take(entry, line)
            case "deviation":
                if seal == len(lineage) - 1:  # of an earlier plan nothing is left to hold it against
                    _about(entry, study, names, line)
            case "relocation":
                _relocated(entry, units.stored, line)
            case "analysis":
                if study.protocol.missing != "bound" and not is_complete(entries[: number - 1]):
                    raise VerificationFailed(
                        "shards are missing, and the protocol does not bound them", where=f"{line}/type"
                    )
            case "audit":
                pass  # held against its file in step 8
            case "cosigned" | "timestamped":
                pass  # held against their files in step 4
            case "pushed":
                if public_url(body["remote"]) != body["remote"]:
                    raise VerificationFailed("names a user or a password", where=f"{line}/body/remote")
            case "closed":
                pass  # said, and nothing here to hold it against
            case _ as never:
                assert_never(never)
    if seal != len(lineage) - 1:
        raise VerificationFailed(
            f"ends with {seal} amendments; {WHERE} is the seal after {len(lineage) - 1}",
            where="ledger.jsonl",
            next_step="prereg amend DIR, if an amendment was interrupted",
        )


def _about(entry: Entry, study: Study, units: set[str], line: str) -> None:
    known = units | {c.id for c in study.protocol.configurations}
    for i, name in enumerate(entry.body["about"]):
        if name not in known:
            raise VerificationFailed(
                f"there is no configuration or unit {name}", where=f"{line}/body/about/{i}"
            )


def _relocated(entry: Entry, stored: Mapping[Place, Mapping[str, Any]], line: str) -> None:
    """What was moved is what was stored: the size of a meta, which no entry tells, is left to step 7."""
    for i, file in enumerate(entry.body["files"]):
        where = f"{line}/body/files/{i}"
        at = shard_at(file["to"])
        body = stored.get(at[:3]) if at is not None else None
        if at is None or body is None or at.kind == "duplicate":
            raise VerificationFailed("is no file of a shard stored before", where=f"{where}/to")
        kind = at.kind
        if file["sha256"] != body["records_sha256" if kind == "jsonl.gz" else "meta_sha256"]:
            raise VerificationFailed("is not the digest that was stored", where=f"{where}/sha256")
        if kind == "jsonl.gz" and file["size"] != body["records_size"]:
            raise VerificationFailed("is not the size that was stored", where=f"{where}/size")


def _sealed(entry: Entry, one: Sealed, signatures: Mapping[str, bytes], line: str) -> None:
    if entry.actor != one.manifest.author.principal:
        raise VerificationFailed("is not the manifest's author", where=f"{line}/actor")
    if entry.body["signature_sha256"] != digest(signatures[one.seal]):
        raise VerificationFailed(
            f"is not the digest of {one.where}.sig", where=f"{line}/body/signature_sha256"
        )
    if entry.body["commit"] != one.manifest.commit:
        raise VerificationFailed("is not the manifest's commit", where=f"{line}/body/commit")
    if parse_time(entry.time) < parse_time(one.manifest.created):
        raise VerificationFailed(
            f"is before {one.where} was made, {one.manifest.created}", where=f"{line}/time"
        )
    if entry.body.get("previous") != one.manifest.amends:
        raise VerificationFailed(f"is not the `amends` of {one.where}", where=f"{line}/body/previous")
