"""Records that were kept elsewhere come back where they belong, byte for byte (section 19, Relocation)."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from prereg.codec.canonical import digest
from prereg.errors import EvidenceIncomplete, UsageError, VerificationFailed, WrongState
from prereg.model.seal import Entry
from prereg.seal.enter import enter
from prereg.seal.finish import is_committed
from prereg.seal.keys import SigningKey
from prereg.seal.shard_set import check_record_folders, check_shard_set, kept_duplicates, shard_files
from prereg.seal.tell import words_of
from prereg.seal.verified import Run, VerifiedStudy
from prereg.seal.verify import STEPS, order_of_history
from prereg.store.files import read_once, write_whole
from prereg.store.folder import partial_of, shard_at, walk
from prereg.store.layout import StudyPaths


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """One file of records, elsewhere and where it belongs."""

    source: Path
    target: str
    """Relative to the study."""
    size: int
    sha256: str


def relocate_study(
    paths: StudyPaths,
    other: Path,
    *,
    reason: str,
    key: SigningKey,
    principal: str,
) -> Entry:
    """Copy the record files of stored shards that are missing here from `other`, a folder of records.

    Every file is compared with the ledger before anything is written; then the entry is made, then the
    copies, then head and commit. A run that was cut off is completed by the next from the same folder. The
    originals stay. Raises UsageError for a folder that is none, WrongState where nothing is missing,
    EvidenceIncomplete where `other` lacks a file, VerificationFailed for other bytes, links, and files that
    the ledger does not know, and what `enter` raises.
    """
    told = words_of(reason, "--reason")
    given, other = other, _records_folder(paths, other)
    moved: list[Moved] = []

    def body(verified: VerifiedStudy) -> Mapping[str, Any]:
        left = _left(verified, principal, told)
        moved.extend(_moved(verified, other, left))
        if left is not None:
            return left.body
        files = [{"from": _told(given, m), "to": m.target, "size": m.size, "sha256": m.sha256} for m in moved]
        return {"seal": verified.seal, "reason": told, "files": files}

    def copy() -> None:
        for name in walk(paths).files:
            if name.startswith("records/") and partial_of(name) is not None:
                (paths.root / name).unlink()
        for one in moved:
            data = read_once(one.source)
            if digest(data) != one.sha256:
                raise VerificationFailed("changed while it was copied", where=str(one.source))
            write_whole(paths.root / one.target, data)
            (paths.root / one.target).chmod(0o644)

    return enter(
        paths,
        "relocation",
        body,
        key=key,
        principal=principal,
        message=f"Relocate records of study {paths.name}",
        touched=[paths.records],
        gate=lambda lenient: _gate(paths, lenient),
        meanwhile=copy,
    )[0]


def _told(given: Path, moved: Moved) -> str:
    """Where a file lay, as the user named the folder."""
    return words_of(str(given / moved.target.removeprefix("records/")), "--from")


def _records_folder(paths: StudyPaths, other: Path) -> Path:
    place = other.absolute()
    if place.is_symlink() or not place.is_dir():
        raise UsageError("is no folder of records", where=str(other), next_step="prereg relocate --help")
    if place.resolve() == paths.records.resolve():
        raise UsageError("is the study's own folder of records", where=str(other))
    return place


def _gate(paths: StudyPaths, lenient: bool) -> VerifiedStudy:
    """Every step but the records and what rests on them: that files are missing is why we are here."""
    run = Run(paths=paths, read_records=False, lenient=lenient)
    for number, _, step in STEPS:
        if number == 9:
            order_of_history(run)  # what was moved away is in HEAD still, or is there no more
        elif number not in (7, 8):
            step(run)
    verified = run.result()
    # What is there is of the plan and of the ledger; what is missing is looked for elsewhere.
    files = {*run.tree.files, *shard_files(verified.stored_in_all)}
    protocol = verified.study.protocol
    check_record_folders(run.tree.folders, protocol)
    check_shard_set(verified.entries, protocol, run.planned(), files, complete=False, orphans=False)
    return verified


def _left(verified: VerifiedStudy, principal: str, reason: str) -> Entry | None:
    """The relocation that a killed run of this very command has entered, and not finished."""
    last = verified.entries[-1]
    if last.type != "relocation" or last.actor != principal or is_committed(verified.paths):
        return None
    if last.body["reason"] != reason:
        raise WrongState(
            "a relocation was cut off; it is completed first, with its own reason",
            where=f"ledger.jsonl:{last.seq}#/body/reason",
            next_step=f"prereg relocate DIR --from PLACE --reason {quote(last.body['reason'])}",
        )
    return last


def _moved(verified: VerifiedStudy, other: Path, left: Entry | None) -> list[Moved]:
    """What is to be copied, every byte of it compared with the ledger."""
    paths = verified.paths
    _refuse_strange(verified, other)
    missing = [t for t in shard_files(verified.stored_in_all) if not os.path.lexists(paths.root / t)]
    if not missing and left is None:
        raise WrongState(
            "no file of a stored shard is missing: there is nothing to relocate",
            where=str(paths.records),
            next_step=f"prereg verify {paths.root}",
        )
    found: list[Moved] = []
    for target in missing:
        source = other / target.removeprefix("records/")
        try:
            data = read_once(source)
        except EvidenceIncomplete:
            raise EvidenceIncomplete(
                f"does not lie there, and {target} is missing",
                where=str(source),
                next_step="gather all that is missing in one folder of records",
            ) from None
        at = shard_at(target)
        assert at is not None  # a name of ours
        body = verified.stored_in_all[at[:3]]
        if digest(data) != body["records_sha256" if at.kind == "jsonl.gz" else "meta_sha256"]:
            raise VerificationFailed("is not what the ledger has as stored", where=str(source))
        found.append(Moved(source=source, target=target, size=len(data), sha256=digest(data)))
    return found


def _refuse_strange(verified: VerifiedStudy, other: Path) -> None:
    """A folder of records holds what the ledger knows, in plain files and folders, and nothing else."""
    known = {*shard_files(verified.stored_in_all), *kept_duplicates(verified.entries)}
    for folder, names, files in os.walk(other, followlinks=False):
        for name in (*names, *files):
            path = Path(folder) / name
            mode = path.lstat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise VerificationFailed("is a link or no plain file", where=str(path))
            if stat.S_ISREG(mode) and f"records/{path.relative_to(other).as_posix()}" not in known:
                raise VerificationFailed("is no file that the ledger knows", where=str(path))
