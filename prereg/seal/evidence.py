"""The records of a verified study: step 7, and the reading that analysis rests on (section 7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from prereg.errors import EvidenceIncomplete, VerificationFailed
from prereg.model.plan import Shard, shards_of
from prereg.model.record import Record, ShardMeta
from prereg.model.seal import Entry, Manifest
from prereg.model.study import Study, Unit
from prereg.model.tree import UnitTree
from prereg.seal.beside import has_records
from prereg.seal.leaves import read_tree
from prereg.seal.metas import check_meta, check_stored, check_times, read_meta
from prereg.seal.packing import BadShard
from prereg.seal.records import has_drafter, read_shard
from prereg.seal.shard_set import Place, name_of, shard_files
from prereg.seal.verified import VerifiedStudy
from prereg.store.files import read_once, size_in
from prereg.store.layout import StudyPaths
from prereg.store.ledger import parse_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What the ledger says before it has a shard stored: the shard's meta must be of that."""

    sealed: datetime
    """The time of the entry of the present seal: nothing amends a plan once there is data."""
    networks: frozenset[str] = frozenset()
    """Those of the collections that had begun by then."""


def told_before(entries: Sequence[Entry]) -> dict[Place, Before]:
    """What stands before each stored shard of every attempt, in a ledger that begins with its seal."""
    before = Before(sealed=parse_time(entries[0].time))
    found: dict[Place, Before] = {}
    for entry in entries:
        if entry.type == "amended":
            before = replace(before, sealed=parse_time(entry.time))
        elif entry.type == "collection-started":
            before = replace(before, networks=before.networks | {entry.body["network"]})
        elif entry.type == "shard-stored":
            body = entry.body
            found.setdefault((body["unit"], body["attempt"], body["shard"]), before)
    return found


def check_moved_metas(paths: StudyPaths, entries: Sequence[Entry]) -> None:
    """Check the sizes of metas that `relocation` entries tell: no other entry has them.

    Raises VerificationFailed or EvidenceIncomplete.
    """
    for entry in entries:
        if entry.type != "relocation":
            continue
        for i, file in enumerate(entry.body["files"]):
            # Its bytes are read and held against the ledger once, with its shard's records.
            if file["to"].endswith(".meta.json") and file["size"] != size_in(paths.root, file["to"]):
                raise VerificationFailed(
                    f"is not the size of {file['to']}",
                    where=f"ledger.jsonl:{entry.seq}#/body/files/{i}/size",
                )


def authenticated_shard(
    paths: StudyPaths,
    study: Study,
    manifest: Manifest,
    seal: str,
    shard: Shard,
    body: Mapping[str, Any],
    before: Before,
) -> tuple[ShardMeta, list[Record]]:
    """Read one shard of draws, each of its two files once, and authenticate it.

    Raises BadShard or EvidenceIncomplete. `before` is what the ledger says before the shard is stored.
    """
    gz, meta, where = stored_files(paths, study, manifest, seal, shard, body, before)
    drafter = has_drafter(study.protocol, shard.unit)
    beside = has_records(study.protocol, shard.unit)
    found = read_shard(
        gz, meta, shard, seal=seal, drafter=drafter, where=where, beside=beside, attempt=body["attempt"]
    )
    return meta, found


def authenticated_tree(
    paths: StudyPaths,
    study: Study,
    manifest: Manifest,
    seal: str,
    shard: Shard,
    body: Mapping[str, Any],
    before: Before,
) -> UnitTree:
    """Read the one shard of an exact unit, its two files once, and authenticate it. Raises as for draws."""
    gz, meta, where = stored_files(paths, study, manifest, seal, shard, body, before)
    drafter = has_drafter(study.protocol, shard.unit)
    return read_tree(gz, meta, shard, seal=seal, drafter=drafter, where=where, attempt=body["attempt"])


def stored_files(
    paths: StudyPaths,
    study: Study,
    manifest: Manifest,
    seal: str,
    shard: Shard,
    body: Mapping[str, Any],
    before: Before,
) -> tuple[bytes, ShardMeta, str]:
    """The bytes of a stored shard's records, its checked meta, and its name.

    Raises as `authenticated_shard`.
    """
    unit = shard.unit
    attempt: int = body["attempt"]
    where, meta_where = shard_files([(unit.id, attempt, shard.index)])
    gz = _read(paths.shard_records(unit.id, shard.index, attempt), where)
    meta_bytes = _read(paths.shard_meta(unit.id, shard.index, attempt), meta_where)
    meta = read_meta(meta_bytes, where=meta_where)
    check_stored(gz, meta_bytes, meta, body, where=where, meta_where=meta_where)
    build = study.protocol.configuration(unit.configuration).build
    check_meta(
        meta,
        shard,
        study=study.protocol.study,
        seal=seal,
        environment=manifest.environments.get(build),
        where=meta_where,
        attempt=attempt,
    )
    check_times(meta, before.sealed, where=meta_where)
    if meta.network not in before.networks:
        raise BadShard(
            f"is {meta.network!r}, as in no collection before this shard was stored",
            where=f"{meta_where}#/network",
        )
    return gz, meta, where


def authenticated_records(verified: VerifiedStudy) -> Iterator[tuple[Unit, list[Record]]]:
    """Each unit of draws with complete evidence and all its records, in protocol order, one at a time.

    INVALID units are left out whatever shards they have (`VerifiedStudy.invalid` names them). A unit with
    shards missing is left out where the protocol bounds missing units; otherwise EvidenceIncomplete is raised
    before anything is yielded. Raises BadShard for a record that is not authentic.
    """
    _refuse_missing(verified)
    stored, lost = verified.stored, verified.lost()
    study, before = verified.study, told_before(verified.entries)
    for unit in study.protocol.units("draws"):
        if unit.id in lost:
            continue
        records: list[Record] = []
        for shard in shards_of(study.protocol, study.seeds, unit):
            body = stored[unit.id, shard.index]
            _, found = authenticated_shard(
                verified.paths,
                study,
                verified.manifest,
                verified.seal,
                shard,
                body,
                before[unit.id, body["attempt"], shard.index],
            )
            records.extend(found)
        yield unit, records


def exact_trees(verified: VerifiedStudy) -> dict[str, UnitTree]:
    """The tree of each exact unit with complete evidence, by the unit's id, in protocol order.

    Units are left out, and EvidenceIncomplete and BadShard raised, as by `authenticated_records`.
    """
    _refuse_missing(verified)
    stored, lost = verified.stored, verified.lost()
    study, before = verified.study, told_before(verified.entries)
    found: dict[str, UnitTree] = {}
    for unit in study.protocol.units("exact"):
        if unit.id in lost:
            continue
        (shard,) = shards_of(study.protocol, study.seeds, unit)
        body = stored[unit.id, shard.index]
        found[unit.id] = authenticated_tree(
            verified.paths,
            study,
            verified.manifest,
            verified.seal,
            shard,
            body,
            before[unit.id, body["attempt"], shard.index],
        )
    return found


def _refuse_missing(verified: VerifiedStudy) -> None:
    """Raise EvidenceIncomplete if a shard is missing and the protocol does not bound it."""
    missing = verified.missing()
    if missing and verified.study.protocol.missing == "refuse":
        first = missing[0]
        raise EvidenceIncomplete(
            f"{len(missing)} shards are missing, the first of unit {first.unit.id}",
            where=name_of(first.unit.id, verified.attempt_of(first.unit.id), first.index, "jsonl.gz"),
            next_step=f"prereg collect {verified.paths.root}",
        )


def _read(path: Any, where: str) -> bytes:
    try:
        return read_once(path)
    except (EvidenceIncomplete, VerificationFailed) as error:
        raise type(error)(error.what, where=where, next_step=error.next_step) from None
