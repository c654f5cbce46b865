"""Second results of a shard: whole or no result, compared line by line, never merged (formats, 21)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from prereg.codec.canonical import digest
from prereg.errors import VerificationFailed
from prereg.model.plan import shards_of
from prereg.model.record import ShardMeta
from prereg.model.study import Study
from prereg.seal.beside import has_records
from prereg.seal.evidence import stored_files, told_before
from prereg.seal.leaves import read_leaves
from prereg.seal.packing import BadShard, unpack, unpack_untold
from prereg.seal.records import has_drafter, read_lines
from prereg.seal.shard_set import kept_duplicates, name_of
from prereg.seal.verified import Run, stored_shards
from prereg.store.files import read_in


def whole_lines(gz: bytes, study: Study, seal: str, unit: str, shard: int, attempt: int) -> bytes:
    """The lines of a result for that shard in that attempt. Raises BadShard if it is not whole.

    Whole is a gzip member of lines each of which, and their number where there are draws, would be
    authenticated in the stored ones' place. What a tree's meta says of its leaves is not asked of a second
    result, which has no meta.
    """
    where = name_of(unit, attempt, shard, "jsonl.gz")
    lines = unpack_untold(gz, where)
    _authenticate(lines, study, seal, (unit, attempt, shard), where)
    return lines


def differing_lines(one: bytes, two: bytes) -> int:
    """How many draws, or leaves by `leaf`, only one of two results has or has in other bytes.

    Both are whole: line for line they are of the same draws, and number their leaves from 0.
    """
    return sum(a != b for a, b in zip_longest(one.splitlines(), two.splitlines()))


def check_duplicates(run: Run) -> int:
    """Hold every `duplicate` entry against the stored shard and the file that was kept; returns how many.

    The set of files is `check_shard_set`'s. Raises VerificationFailed, BadShard or EvidenceIncomplete.
    """
    entries, seal = run.told, run.seal
    planned, stored, before = run.planned(), stored_shards(entries), told_before(entries)
    kept = {entry.seq: name for name, entry in kept_duplicates(entries).items()}
    found = [entry for entry in entries if entry.type == "duplicate"]
    for entry in found:
        body = entry.body
        unit, _, index = place = (body["unit"], body["attempt"], body["shard"])
        shard = planned[unit, index]
        gz, meta, where = stored_files(
            run.paths, run.study, run.manifest, seal, shard, stored[place], before[place]
        )
        at = f"ledger.jsonl:{entry.seq}#/body"
        if entry.seq in kept:
            first = unpack(gz, meta, where)
            _check_kept(run, kept[entry.seq], body, place, first, at)
        else:
            _check_same(body, meta, at)
    return len(found)


def _check_same(body: Mapping[str, Any], meta: ShardMeta, at: str) -> None:
    """An entry of no difference tells of the stored lines; only their packing may be another's."""
    expected = {"lines_sha256": meta.lines_sha256, "lines_size": meta.lines_size, "lines": meta.draws}
    if body["records_sha256"] == meta.records_sha256:
        expected["records_size"] = meta.records_size
    for name, wanted in expected.items():
        if body[name] != wanted:
            raise VerificationFailed(
                f"is {body[name]!r:.80}; the stored shard's is {wanted!r:.80}, and nothing is said to differ",
                where=f"{at}/{name}",
            )


def _check_kept(
    run: Run, name: str, body: Mapping[str, Any], place: tuple[str, int, int], first: bytes, at: str
) -> None:
    gz = read_in(run.paths.root, name)[0]
    if digest(gz) != body["records_sha256"] or len(gz) != body["records_size"]:
        raise BadShard("its digest or size is not the ledger's", where=name)
    lines = unpack(gz, _Entry(body["lines_sha256"], body["lines_size"]), name, by="its ledger entry")
    _authenticate(lines, run.study, run.seal, place, name)
    counted = {
        "lines": len(lines.splitlines()),
        "differing": differing_lines(first, lines),
    }
    for field, wanted in counted.items():
        if body[field] != wanted:
            raise VerificationFailed(f"is {body[field]}; {name} has {wanted}", where=f"{at}/{field}")


@dataclass(frozen=True, slots=True)
class _Entry:
    """What a `duplicate` entry tells of the lines."""

    lines_sha256: str
    lines_size: int


def _authenticate(lines: bytes, study: Study, seal: str, place: tuple[str, int, int], where: str) -> None:
    unit_id, attempt, index = place
    protocol = study.protocol
    unit = next((u for u in protocol.units() if u.id == unit_id), None)
    shards = () if unit is None else shards_of(protocol, study.seeds, unit)
    shard = next((s for s in shards if s.index == index), None)
    if unit is None or shard is None:
        raise BadShard("is no shard of the plan", where=where)
    drafter = has_drafter(protocol, unit)
    if shard.channel == "exact":
        leaves = lines.splitlines(keepends=True)
        if not leaves:
            raise BadShard("has no leaf", where=where)  # no meta tells of a tree without one
        read_leaves(leaves, shard, seal=seal, drafter=drafter, where=where, attempt=attempt)
    else:
        beside = has_records(protocol, unit)
        read_lines(lines, shard, seal=seal, drafter=drafter, where=where, beside=beside, attempt=attempt)
