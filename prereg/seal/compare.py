"""What differs between a seal and what lies on disk now, for people to read."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from prereg.codec.canonical import digest, loads
from prereg.errors import PreregError
from prereg.model.seal import Manifest
from prereg.seal.agree import differences
from prereg.seal.manifest import WHERE, read_manifest
from prereg.seal.order import seal_commit
from prereg.seal.verified import stored_shards
from prereg.store.files import read_in, read_with_mode
from prereg.store.folder import is_known, is_unsealed, walk
from prereg.store.harness import harness_files
from prereg.store.layout import StudyPaths, not_sealed
from prereg.store.ledger import read_ledger
from prereg.store.repo import Repo

Change = Literal["added", "removed", "changed"]
DECISIONS = "analysis/decisions.json"
MAX_TEXT = 1_000_000
"""Largest file that is compared line by line, in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One file that is not as it was sealed; None where it did not or does not exist."""

    path: str
    change: Change
    note: str | None
    """What is the matter beyond the bytes: a link, a mode, CRLF line ends."""
    sealed_size: int | None
    sealed_sha256: str | None
    size: int | None
    sha256: str | None
    diff: str | None
    """A unified diff against the committed bytes, for a text file whose sealed bytes git still has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyDiff:
    """Sealed against current; both lists are in order of path."""

    seal: str
    files: tuple[FileChange, ...]
    harness: tuple[FileChange, ...]
    """Sealed harness against the installed one: for information, a study runs its sealed copy."""
    decisions: tuple[str, ...]
    """Where analysis/decisions.json says other than what the ledger's analysis wrote, value by value."""
    records: tuple[str, ...]
    """Files of stored shards that are not as the ledger has them, each with what is the matter."""


def diff_study(paths: StudyPaths) -> StudyDiff:
    """Compare a study's folder with its manifest. Nothing is trusted or verified by it.

    Raises WrongState for a study without a seal, and a codec error for a manifest or a ledger that cannot be
    read.
    """
    if not paths.manifest.exists():
        raise not_sealed(paths)
    data = read_in(paths.root, WHERE)[0]
    manifest = read_manifest(data)
    committed = _Committed(paths, data)
    tree = walk(paths)
    found: list[FileChange] = []
    listed = {f.path: f for f in manifest.files}
    present = {n for n in tree.files if not is_unsealed(n) or not is_known(n)} | set(tree.odd)
    for name in sorted(present | set(listed)):
        sealed = listed.get(name)
        now, mode, note = _now(paths, name)
        if name in tree.odd:
            note = f"is {tree.odd[name]}"
        if sealed is not None and now is not None and digest(now) == sealed.sha256 and mode == sealed.mode:
            continue
        before = committed(name) if sealed is not None else None
        if before is not None and sealed is not None and digest(before) != sealed.sha256:
            before = None
        if sealed is not None and now is not None:
            if mode != sealed.mode:
                note = f"has mode {mode}, sealed with {sealed.mode}"
            elif digest(now.replace(b"\r\n", b"\n")) == sealed.sha256:
                note = "has CRLF line ends; the rest is as sealed"
        change: Change = "added" if sealed is None else ("removed" if name not in present else "changed")
        found.append(
            FileChange(
                path=name,
                change=change,
                note=note,
                sealed_size=None if sealed is None else sealed.size,
                sealed_sha256=None if sealed is None else sealed.sha256,
                size=None if now is None else len(now),
                sha256=None if now is None else digest(now),
                diff=_diff(name, before, now),
            )
        )
    return StudyDiff(
        seal=digest(data),
        files=tuple(found),
        harness=_harness(paths, manifest),
        decisions=_decisions(paths),
        records=_records(paths, tree.files),
    )


def _decisions(paths: StudyPaths) -> tuple[str, ...]:
    """What differs in the decisions; one line if only their bytes do, or if git has not the old ones."""
    data = read_in(paths.root, "ledger.jsonl")[0] if paths.ledger.exists() else b""
    entries = read_ledger(data) if data else ()
    entry = next((e for e in reversed(entries) if e.type == "analysis"), None)
    if entry is None:
        return ("there is a file of decisions, and no analysis in the ledger",) * paths.decisions.exists()
    wanted = entry.body["decisions_sha256"]
    now = _now(paths, DECISIONS)[0]
    if now is None:
        return (f"the file of ledger entry {entry.seq} is missing",)
    if digest(now) == wanted:
        return ()
    before = _head_blob(paths)
    if before is None or digest(before) != wanted:
        return (f"the file is not that of ledger entry {entry.seq}, which git does not have either",)
    try:
        found = differences(loads(before, where=DECISIONS), loads(now, where=DECISIONS))
    except PreregError as error:
        return (error.what,)
    return tuple(found) or ("every value is the same, the bytes are not",)


def _records(paths: StudyPaths, present: Collection[str]) -> tuple[str, ...]:
    """What the files of records are, against the digests that the ledger has of them."""
    entries = read_ledger(read_in(paths.root, "ledger.jsonl")[0]) if paths.ledger.exists() else ()
    found = []
    for (unit, attempt, shard), body in stored_shards(entries).items():
        for file, field in (
            (paths.shard_records(unit, shard, attempt), "records_sha256"),
            (paths.shard_meta(unit, shard, attempt), "meta_sha256"),
        ):
            name = file.relative_to(paths.root).as_posix()
            if name not in present:
                found.append(f"{name} is missing")
                continue
            now, _, note = _now(paths, name)
            if now is None or digest(now) != body[field]:
                found.append(f"{name} {note or 'is not as it was stored'}")
    return tuple(found)


def _head_blob(paths: StudyPaths) -> bytes | None:
    """The committed decisions, where git has them."""
    try:
        repo = Repo.find(paths.root)
        commit = repo.head()
        return None if commit is None else repo.blob_at(commit, paths.decisions)
    except PreregError:
        return None


class _Committed:
    """The bytes of the seal's commit, where git has them."""

    def __init__(self, paths: StudyPaths, manifest: bytes) -> None:
        self._paths = paths
        self._repo: Repo | None = None
        self._commit: str | None = None
        try:
            self._repo = Repo.find(paths.root)
            self._commit = seal_commit(self._repo, paths, manifest)
        except PreregError:
            pass

    def __call__(self, name: str) -> bytes | None:
        if self._repo is None or self._commit is None:
            return None
        return self._repo.blob_at(self._commit, self._paths.root / name)


def _now(paths: StudyPaths, name: str) -> tuple[bytes | None, str | None, str | None]:
    try:
        data, mode = read_with_mode(paths.root / name)
    except PreregError as error:
        return None, None, error.what
    return data, mode, None


def _diff(name: str, before: bytes | None, now: bytes | None) -> str | None:
    if before is None or now is None or before == now or max(len(before), len(now)) > MAX_TEXT:
        return None
    try:
        old, new = before.decode("utf-8"), now.decode("utf-8")
    except UnicodeDecodeError:
        return None
    if "\0" in old or "\0" in new:
        return None
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), f"sealed/{name}", f"current/{name}"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ no newline at the end\n" for line in lines)


def _harness(paths: StudyPaths, manifest: Manifest) -> tuple[FileChange, ...]:
    prefix = "code/harness/"
    sealed = {
        f.path.removeprefix(prefix): f
        for f in manifest.files
        if f.path.startswith(prefix) and f.path.endswith(".py") and not f.path.startswith(f"{prefix}builds/")
    }
    try:
        installed = harness_files()
    except PreregError:
        return ()
    found = []
    for name in sorted(sealed.keys() | installed.keys()):
        before, now = sealed.get(name), installed.get(name)
        if before is not None and now is not None and before.sha256 == digest(now):
            continue
        change: Change = "changed" if before and now is not None else ("removed" if before else "added")
        text = _now(paths, prefix + name)[0] if before is not None else None
        if before is not None and text is not None and digest(text) != before.sha256:
            text = None
        found.append(
            FileChange(
                path=f"harness/{name}",
                change=change,
                note=None,
                sealed_size=None if before is None else before.size,
                sealed_sha256=None if before is None else before.sha256,
                size=None if now is None else len(now),
                sha256=None if now is None else digest(now),
                diff=_diff(f"harness/{name}", text, now),
            )
        )
    return tuple(found)
