"""Which files of records there are, held against the ledger and the plan (step 7; formats, 7 and 21)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from prereg.errors import EvidenceIncomplete, VerificationFailed
from prereg.model.attempts import Tried, tried, unit_folder
from prereg.model.plan import Shard
from prereg.model.seal import Entry
from prereg.model.study import Protocol
from prereg.seal.verified import present_shards, stored_shards
from prereg.store.folder import shard_at

Place = tuple[str, int, int]
"""Unit, attempt and shard."""


def check_shard_set(
    entries: Sequence[Entry],
    protocol: Protocol,
    planned: Mapping[tuple[str, int], Shard],
    files: Collection[str],
    *,
    complete: bool,
    orphans: bool,
) -> int:
    """Check that the files of records are the ledger's and, if `complete`, the plan's; returns how many.

    With `orphans` files without a ledger entry are let through, as a killed collector leaves them. Raises
    EvidenceIncomplete for what is missing and VerificationFailed for what is too much.
    """
    stored, copies = stored_shards(entries), kept_duplicates(entries)
    units = tried(entries, protocol.attempts)
    on_disk = {name: at for name in files if (at := shard_at(name)) is not None}
    wanted = [name_of(unit, attempt, shard, kind) for unit, attempt, shard in stored for kind in _KINDS]
    for name in [*wanted, *copies]:
        if name not in on_disk:
            raise VerificationFailed(
                f"the file is missing; ledger.jsonl holds its shard as {_held(name, copies)}",
                where=name,
                next_step=f"git checkout -- {name}; or, if no commit has it yet, lay a copy of it in its "
                "place: nothing else can stand for it, and without it this study has no end",
            )
    for name, at in sorted(on_disk.items()):
        present = units.get(at.unit, Tried()).attempt
        if not protocol.since(3) and (at.attempt > 1 or at.kind == "duplicate"):
            raise VerificationFailed("only a study of edition 3 has such a file", where=name)
        if (at.unit, at.shard) not in planned:
            raise VerificationFailed("is no shard of the plan", where=name)
        if at.attempt > present:
            raise VerificationFailed(
                f"no such attempt was made: {at.unit} is in attempt {present}", where=name
            )
        if name not in copies and (at.kind == "duplicate" or at[:3] not in stored) and not orphans:
            what = (
                "ledger.jsonl keeps no such duplicate"
                if at.kind == "duplicate"
                else "has no ledger entry: it was not stored by a finished write"
            )
            raise VerificationFailed(what, where=name, next_step="prereg collect DIR")
    if complete:
        _refuse_missing(entries, protocol, planned)
    return len(stored)


def check_record_folders(folders: Collection[str], protocol: Protocol) -> None:
    """Refuse a folder of no unit, or of an attempt that the protocol does not have, also if it is empty.

    Raises VerificationFailed.
    """
    units = {unit.id for unit in protocol.units()}
    for name in folders:
        if name.startswith("records/") and name[len("records/") :].partition(".attempt-")[0] not in units:
            raise VerificationFailed("is the folder of no unit of the plan", where=name)
        attempt = name.rpartition(".attempt-")[2] if name.startswith("records/") else ""
        if attempt.isdigit() and (not protocol.since(3) or int(attempt) > protocol.attempts):
            count = "one attempt" if protocol.attempts == 1 else f"{protocol.attempts} attempts"
            raise VerificationFailed(f"the protocol has {count}", where=name)


def kept_duplicates(entries: Sequence[Entry]) -> dict[str, Entry]:
    """The `duplicate` entries of which the second result was not the same, by the file that holds it."""
    counts: dict[Place, int] = {}
    found: dict[str, Entry] = {}
    for entry in entries:
        if entry.type == "duplicate":
            body = entry.body
            place = (body["unit"], body["attempt"], body["shard"])
            counts[place] = counts.get(place, 0) + 1
            if body["differing"]:
                found[name_of(*place, f"duplicate-{counts[place]}.jsonl.gz")] = entry
    return found


def name_of(unit: str, attempt: int, shard: int, kind: str) -> str:
    """The path of a file of a shard, in the study's folder; `kind` is what follows the shard's number."""
    return f"records/{unit_folder(unit, attempt)}/{shard:05d}.{kind}"


def shard_files(stored: Collection[Place]) -> Iterator[str]:
    """The two files of each of these shards."""
    return (name_of(*place, kind) for place in stored for kind in _KINDS)


_KINDS = ("jsonl.gz", "meta.json")


def _held(name: str, copies: Mapping[str, Any]) -> str:
    return "come a second time, not the same" if name in copies else "stored"


def _refuse_missing(
    entries: Sequence[Entry], protocol: Protocol, planned: Mapping[tuple[str, int], Shard]
) -> None:
    units, present = tried(entries, protocol.attempts), present_shards(entries, protocol.attempts)
    for unit, index in planned:
        one = units.get(unit, Tried())
        if not one.over and (unit, index) not in present:
            raise EvidenceIncomplete(
                "the collection is called complete without this shard",
                where=name_of(unit, one.attempt, index, "jsonl.gz"),
            )
