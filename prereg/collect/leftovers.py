"""What a killed run left: torn and partial files are removed, whole results are put aside to be compared.

A second result lies where it stays if it turns out to differ, `<shard>.duplicate-<k>.jsonl.gz`, and its name
says how far it has come: while the ledger has fewer than k `duplicate` entries of its shard and attempt, it
waits. A collection that is killed between any two of these steps is therefore taken up where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from prereg.model.attempts import Tried
from prereg.model.seal import Entry
from prereg.seal.duplicates import whole_lines
from prereg.seal.packing import BadShard
from prereg.seal.shard_set import Place, kept_duplicates
from prereg.seal.verified import VerifiedStudy, stored_shards
from prereg.store.files import read_once, sync_folder
from prereg.store.folder import ShardFile, leftovers, shard_at, walk
from prereg.store.layout import StudyPaths

Waiting = dict[Place, list[int]]
"""The numbers of the second results of a shard that are put aside and not yet entered, in order."""


def take_up(verified: VerifiedStudy, note: Callable[[str], None]) -> Waiting:
    """Clear away what a killed run left; returns the whole results that are to be compared.

    Before edition 3 nothing is compared: what is not in the ledger is removed.
    """
    paths, entries = verified.paths, verified.entries
    if verified.study.protocol.since(3):
        for name in _put_aside(verified):
            note(f"{name}: a whole result that a run which was killed left; put aside, to be compared")
    waiting = _waiting(verified)
    keep = {paths.duplicate(u, s, a, k) for (u, a, s), copies in waiting.items() for k in copies}
    for name in _discard(paths, entries, keep):
        note(f"{name}: left by a run that was killed; removed")
    return waiting


def entered(entries: Iterable[Entry]) -> dict[Place, int]:
    """How many second results of each shard and attempt the ledger has."""
    found: dict[Place, int] = {}
    for entry in entries:
        if entry.type == "duplicate":
            place = (entry.body["unit"], entry.body["attempt"], entry.body["shard"])
            found[place] = found.get(place, 0) + 1
    return found


def touched(paths: StudyPaths, waiting: Mapping[Place, Sequence[int]]) -> list[Path]:
    """What a run commits below records/: all of it but what waits to be compared."""
    if not waiting or not paths.records.exists():
        return [paths.records]
    left = {paths.duplicate(u, s, a, k) for (u, a, s), copies in waiting.items() for k in copies}
    found: list[Path] = []
    for folder in sorted(paths.records.iterdir()):
        files = sorted(folder.iterdir())
        found += [folder] if left.isdisjoint(files) else [file for file in files if file not in left]
    return found


def _put_aside(verified: VerifiedStudy) -> list[str]:
    """Rename the whole results of shards that the ledger has not stored; the paths that they had."""
    paths, stored, counts = verified.paths, verified.stored_in_all, entered(verified.entries)
    files = [(name, at) for name in walk(paths).files if (at := shard_at(name)) is not None]
    last = dict(counts)
    for _, at in files:
        last[at[:3]] = max(last.get(at[:3], 0), at.copy)
    gone = []
    for name, at in files:
        if at.kind != "jsonl.gz" or at[:3] in stored or not _may_be_drawn(verified, at):
            continue
        if not _is_whole(verified, at, paths.root / name):
            continue
        last[at[:3]] = last.get(at[:3], 0) + 1
        target = paths.duplicate(at.unit, at.shard, at.attempt, last[at[:3]])
        (paths.root / name).replace(target)
        sync_folder(target.parent)
        gone.append(name)
    return gone


def _waiting(verified: VerifiedStudy) -> Waiting:
    counts = entered(verified.entries)
    found: Waiting = {}
    for name in walk(verified.paths).files:
        at = shard_at(name)
        if at is None or at.kind != "duplicate" or at.copy <= counts.get(at[:3], 0):
            continue
        if _may_be_drawn(verified, at) and _is_whole(verified, at, verified.paths.root / name):
            found.setdefault(at[:3], []).append(at.copy)
    return {place: sorted(copies) for place, copies in found.items()}


def _may_be_drawn(verified: VerifiedStudy, at: ShardFile) -> bool:
    """Whether the shard is, or may yet be, stored in that attempt by this run: else nothing compares it."""
    one = verified.tried.get(at.unit, Tried())
    return at.attempt == one.attempt and not one.over


def _is_whole(verified: VerifiedStudy, at: ShardFile, file: Path) -> bool:
    try:
        whole_lines(read_once(file), verified.study, verified.seal, at.unit, at.shard, at.attempt)
    except BadShard:
        return False
    return True


def _discard(paths: StudyPaths, entries: Sequence[Entry], keep: set[Path]) -> list[str]:
    """Remove partial files, and files of shards that the ledger does not have, and return their names.

    Anything else that does not belong stays, for the verification to refuse.
    """
    stored, kept = stored_shards(entries), kept_duplicates(entries)
    gone = leftovers(paths)
    for name in walk(paths).files:
        at = shard_at(name)
        if at is None or name in kept or paths.root / name in keep:
            continue
        if at.kind == "duplicate" or at[:3] not in stored:
            gone.append(paths.root / name)
    for path in gone:
        path.unlink()
    for folder in {path.parent for path in gone if path.parent.parent == paths.records}:
        if not any(folder.iterdir()):
            folder.rmdir()
    return sorted(path.relative_to(paths.root).as_posix() for path in gone)
