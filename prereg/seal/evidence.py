"""The records of a verified study: step 7, and the reading that analysis rests on (section 7)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from prereg.errors import EvidenceIncomplete, VerificationFailed
from prereg.model.plan import Shard, shards_of
from prereg.model.record import Record, ShardMeta
from prereg.model.seal import Entry, Manifest
from prereg.model.study import Study, Unit
from prereg.model.tree import UnitTree
from prereg.seal.beside import has_records
from prereg.seal.leaves import read_tree
from prereg.seal.packing import BadShard
from prereg.seal.records import check_meta, check_stored, has_drafter, read_meta, read_shard
from prereg.seal.verified import VerifiedStudy
from prereg.store.files import read_once, size_in
from prereg.store.folder import shard_at
from prereg.store.layout import StudyPaths


def check_shard_set(
    stored: Mapping[tuple[str, int], Mapping[str, Any]],
    planned: Mapping[tuple[str, int], Shard],
    invalid: Mapping[str, str],
    files: Sequence[str],
    *,
    complete: bool,
    orphans: bool,
) -> int:
    """Check that the shards on disk are the ledger's and, if `complete`, the plan's; returns how many.

    With `orphans` files without a ledger entry are let through, as a killed collector leaves them. Raises
    EvidenceIncomplete for what is missing and VerificationFailed for what is too much.
    """
    on_disk = {at for name in files if (at := shard_at(name)) is not None}
    for unit, index in stored:
        for kind in ("jsonl.gz", "meta.json"):
            if (unit, index, kind) not in on_disk:
                raise VerificationFailed(
                    "the file is missing; ledger.jsonl holds its shard as stored",
                    where=f"records/{unit}/{index:05d}.{kind}",
                    next_step="git checkout -- records",
                )
    for unit, index, kind in sorted(on_disk):
        where = f"records/{unit}/{index:05d}.{kind}"
        if (unit, index) not in planned:
            raise VerificationFailed("is no shard of the plan", where=where)
        if (unit, index) not in stored and not orphans:
            raise VerificationFailed(
                "has no ledger entry: it was not stored by a finished write",
                where=where,
                next_step="prereg collect DIR",
            )
    if complete:
        for unit, index in planned:
            if unit not in invalid and (unit, index) not in stored:
                raise EvidenceIncomplete(
                    "the collection is called complete without this shard",
                    where=f"records/{unit}/{index:05d}.jsonl.gz",
                )
    return len(stored)


def networks_before(entries: Sequence[Entry]) -> dict[tuple[str, int], frozenset[str]]:
    """For each stored shard, by unit and number, the networks of the collections that had begun by then."""
    begun: frozenset[str] = frozenset()
    found: dict[tuple[str, int], frozenset[str]] = {}
    for entry in entries:
        if entry.type == "collection-started":
            begun |= {entry.body["network"]}
        elif entry.type == "shard-stored":
            found.setdefault((entry.body["unit"], entry.body["shard"]), begun)
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
    networks: Collection[str],
) -> tuple[ShardMeta, list[Record]]:
    """Read one shard of draws, each of its two files once, and authenticate it.

    Raises BadShard or EvidenceIncomplete.

    `networks` are those of the collections that had begun when the shard was stored.
    """
    gz, meta, where = _stored(paths, study, manifest, seal, shard, body, networks)
    drafter = has_drafter(study.protocol, shard.unit)
    beside = has_records(study.protocol, shard.unit)
    return meta, read_shard(gz, meta, shard, seal=seal, drafter=drafter, where=where, beside=beside)


def authenticated_tree(
    paths: StudyPaths,
    study: Study,
    manifest: Manifest,
    seal: str,
    shard: Shard,
    body: Mapping[str, Any],
    networks: Collection[str],
) -> UnitTree:
    """Read the one shard of an exact unit, its two files once, and authenticate it. Raises as for draws."""
    gz, meta, where = _stored(paths, study, manifest, seal, shard, body, networks)
    drafter = has_drafter(study.protocol, shard.unit)
    return read_tree(gz, meta, shard, seal=seal, drafter=drafter, where=where)


def _stored(
    paths: StudyPaths,
    study: Study,
    manifest: Manifest,
    seal: str,
    shard: Shard,
    body: Mapping[str, Any],
    networks: Collection[str],
) -> tuple[bytes, ShardMeta, str]:
    """The bytes of a shard's records, its checked meta, and its name."""
    unit = shard.unit
    folder = f"records/{unit.id}/{shard.name}"
    where, meta_where = f"{folder}.jsonl.gz", f"{folder}.meta.json"
    gz = _read(paths.shard_records(unit.id, shard.index), where)
    meta_bytes = _read(paths.shard_meta(unit.id, shard.index), meta_where)
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
    )
    if meta.network not in networks:
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
    study, networks = verified.study, networks_before(verified.entries)
    for unit in study.protocol.units("draws"):
        if unit.id in lost:
            continue
        records: list[Record] = []
        for shard in shards_of(study.protocol, study.seeds, unit):
            place = (unit.id, shard.index)
            _, found = authenticated_shard(
                verified.paths,
                study,
                verified.manifest,
                verified.seal,
                shard,
                stored[place],
                networks[place],
            )
            records.extend(found)
        yield unit, records


def exact_trees(verified: VerifiedStudy) -> dict[str, UnitTree]:
    """The tree of each exact unit with complete evidence, by the unit's id, in protocol order.

    Units are left out, and EvidenceIncomplete and BadShard raised, as by `authenticated_records`.
    """
    _refuse_missing(verified)
    stored, lost = verified.stored, verified.lost()
    study, networks = verified.study, networks_before(verified.entries)
    found: dict[str, UnitTree] = {}
    for unit in study.protocol.units("exact"):
        if unit.id in lost:
            continue
        (shard,) = shards_of(study.protocol, study.seeds, unit)
        place = (unit.id, shard.index)
        found[unit.id] = authenticated_tree(
            verified.paths,
            study,
            verified.manifest,
            verified.seal,
            shard,
            stored[place],
            networks[place],
        )
    return found


def _refuse_missing(verified: VerifiedStudy) -> None:
    """Raise EvidenceIncomplete if a shard is missing and the protocol does not bound it."""
    missing = verified.missing()
    if missing and verified.study.protocol.missing == "refuse":
        raise EvidenceIncomplete(
            f"{len(missing)} shards are missing, the first of unit {missing[0].unit.id}",
            where=f"records/{missing[0].unit.id}/{missing[0].name}.jsonl.gz",
            next_step=f"prereg collect {verified.paths.root}",
        )


def _read(path: Any, where: str) -> bytes:
    try:
        return read_once(path)
    except (EvidenceIncomplete, VerificationFailed) as error:
        raise type(error)(error.what, where=where, next_step=error.next_step) from None
