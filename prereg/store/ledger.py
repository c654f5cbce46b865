"""A study's ledger: reading its chain, its state, and durable appends (docs/formats.md section 5)."""

from __future__ import annotations

import contextlib
import functools
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from prereg.codec.canonical import MalformedJson, digest, dump_file, loads, loads_machine, value_digest
from prereg.codec.schema import pointer, schema_folder
from prereg.errors import EvidenceIncomplete, UsageError, VerificationFailed
from prereg.model.places import place_fault, state
from prereg.model.seal import Entry, EntryType, State
from prereg.store.files import read_once, sync_folder
from prereg.store.layout import StudyPaths
from prereg.store.lock import study_lock

NAME = "ledger.jsonl"
START = "0" * 64
"""`prev` of the first entry."""


class LedgerFault(VerificationFailed):
    """The ledger is not the chain it claims to be."""


class TornTail(LedgerFault):
    """The last line has no newline: a write was cut off, or the file was."""


def read_ledger(data: bytes, *, where: str = NAME) -> tuple[Entry, ...]:
    """Parse a whole ledger and check it as a chain.

    Raises LedgerFault, with the line's number in `where`, for the first line that is torn, not canonical,
    not of its schema, out of sequence, earlier than the line before, wrong in its body's digest, not bound to
    the line before, or not allowed where it stands.
    """
    if not data:
        raise LedgerFault("is empty", where=where)
    lines = data.split(b"\n")
    tail = lines.pop()
    entries: list[Entry] = []
    prev = START
    for number, line in enumerate(lines, 1):
        entry = _entry(line + b"\n", f"{where}:{number}")
        _check_place(entries, entry, prev, f"{where}:{number}")
        entries.append(entry)
        prev = digest(line + b"\n")
    if tail:
        raise TornTail(
            "the last line has no newline: a write was cut off",
            where=f"{where}:{len(lines) + 1}",
            next_step="the verb that was cut off, once more: it takes the torn line away",
        )
    return tuple(entries)


def head_of(data: bytes) -> str:
    """The head of a ledger's bytes: SHA-256 of its last line with its newline."""
    return digest(data[data.rfind(b"\n", 0, len(data) - 1) + 1 :])


def line_digests(data: bytes) -> list[str]:
    """SHA-256 of every line, newline included: what the head was after each entry."""
    return [digest(line) for line in data.splitlines(keepends=True)]


def line_of(seq: int, time: str, type_: EntryType, actor: str, body: Mapping[str, Any], prev: str) -> bytes:
    """The bytes of one ledger line. Raises VerificationFailed for a body that its schema does not allow."""
    value = {
        "seq": seq,
        "time": time,
        "type": type_,
        "actor": actor,
        "body": dict(body),
        "body_sha256": value_digest(dict(body)),
        "prev": prev,
    }
    line = dump_file(value)
    _entry(line, f"{NAME}:{seq}")
    return line


def append(
    paths: StudyPaths, type_: EntryType, body: Mapping[str, Any], actor: str, *, now: datetime | None = None
) -> tuple[Entry, str | None]:
    """Add one entry durably, and return it with a note if a torn last line had to be repaired first.

    For many entries use `LedgerWriter`, which checks the chain once. Raises what `LedgerWriter` raises.
    """
    with LedgerWriter.open(paths) as writer:
        return writer.append(type_, body, actor, now=now), writer.note


def repair(paths: StudyPaths) -> str | None:
    """Cut off a torn last line, left by a crash in the middle of an append; returns what was done.

    Raises LedgerFault if anything else is wrong with the ledger.
    """
    with LedgerWriter.open(paths) as writer:
        return writer.note


def mend(paths: StudyPaths) -> None:
    """Cut off a torn last line, if there is one; what else is wrong is left to whoever verifies.

    Raises LedgerFault if the signed head says that the line was whole.
    """
    try:
        read_ledger(read_once(paths.ledger))
    except TornTail:
        repair(paths)
    except (VerificationFailed, EvidenceIncomplete):
        pass


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True, kw_only=True)
class LedgerWriter:
    """The one writer of a ledger, while it holds the study's lock."""

    paths: StudyPaths
    entries: list[Entry]
    note: str | None
    """What was repaired on opening, or None."""
    clock: Callable[[], datetime] = field(default=_now, repr=False)
    """What tells the time of an entry: a run that makes many has a clock of its own."""
    entering: Callable[[int], object] = field(default=lambda seq: None, repr=False)
    """Called with each entry's number before its line is written, so that no kill comes between the two."""
    _head: str
    _fd: int = field(repr=False)
    _size: int = field(repr=False)

    @staticmethod
    @contextlib.contextmanager
    def open(paths: StudyPaths, *, create: bool = False, wait: float = 30.0) -> Iterator[LedgerWriter]:
        """Lock the study, read and check its chain, and repair a torn last line.

        Raises EvidenceIncomplete if there is no ledger (unless `create`), LedgerFault for a broken chain,
        WrongState if another process holds the lock, and VerificationFailed if it is no regular file.
        """
        with study_lock(paths, wait=wait):
            flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            data = b""
            if create:
                flags |= os.O_CREAT | os.O_EXCL
            else:
                data = read_once(paths.ledger)
            try:
                fd = os.open(paths.ledger, flags, 0o644)
            except FileExistsError:
                raise LedgerFault("exists already", where=str(paths.ledger)) from None
            except OSError as error:
                raise EvidenceIncomplete(
                    f"cannot be opened: {error.strerror}", where=str(paths.ledger)
                ) from None
            try:
                writer = LedgerWriter(
                    paths=paths, entries=[], note=None, _head=START, _fd=fd, _size=len(data)
                )
                if create:
                    sync_folder(paths.root)
                else:
                    writer._load(data)
                yield writer
            finally:
                os.close(fd)

    @property
    def head(self) -> str:
        """The head after the last entry."""
        return self._head

    @property
    def state(self) -> State:
        """The state after the last entry."""
        return state(self.entries)

    def append(
        self, type_: EntryType, body: Mapping[str, Any], actor: str, *, now: datetime | None = None
    ) -> Entry:
        """Write one line and make it durable before returning.

        A clock that stands behind the last entry is not followed: times never decrease. Raises
        VerificationFailed for a body or a place that is not allowed, and if the file was changed by others;
        what OSError stopped is taken back.
        """
        info = os.fstat(self._fd)
        if info.st_size != self._size or not stat.S_ISREG(info.st_mode):
            raise LedgerFault("was changed by another program during this run", where=str(self.paths.ledger))
        moment = timestamp(self.clock() if now is None else now)
        if self.entries and parse_time(moment) < parse_time(self.entries[-1].time):
            moment = self.entries[-1].time
        line = line_of(len(self.entries) + 1, moment, type_, actor, body, self._head)
        where = f"{NAME}:{len(self.entries) + 1}"
        entry = _entry(line, where)
        _check_place(self.entries, entry, self._head, where)
        self.entering(entry.seq)
        try:
            view = memoryview(line)
            while view:
                view = view[os.write(self._fd, view) :]
            os.fsync(self._fd)
        except BaseException:
            # Nothing may follow a half line, nor a whole one that may not be on the disk. Where it cannot be
            # taken back, the size is not the known one, and nothing is appended any more.
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._size)
                os.fsync(self._fd)
            raise
        self._size += len(line)
        self.entries.append(entry)
        self._head = digest(line)
        return entry

    def _refuse_signed_tail(self) -> None:
        """A line that the signed head covers was once whole: no crash in an append cuts that off."""
        try:
            head = loads(read_once(self.paths.head), where=self.paths.head.name)
        except EvidenceIncomplete:
            return
        seq = head.get("seq") if isinstance(head, dict) else None
        if not isinstance(seq, int) or seq > len(self.entries):
            raise LedgerFault(
                f"the file ends inside line {len(self.entries) + 1}, but the head names entry {seq}",
                where=str(self.paths.ledger),
                next_step="git log -p -- " + NAME,
            )

    def _load(self, data: bytes) -> None:
        try:
            self.entries = list(read_ledger(data))
        except TornTail:
            keep = data.rfind(b"\n") + 1
            self.entries = list(read_ledger(data[:keep]))
            self._refuse_signed_tail()
            if os.fstat(self._fd).st_size != len(data):
                raise LedgerFault("was changed while it was read", where=str(self.paths.ledger)) from None
            os.ftruncate(self._fd, keep)
            os.fsync(self._fd)
            self.note = (
                f"{NAME}: the last line ({len(data) - keep} bytes, no newline) was cut off in the middle of "
                "a write and has been removed"
            )
            data = data[:keep]
        self._size = len(data)
        self._head = head_of(data)


def timestamp(now: datetime | None = None) -> str:
    """A time as the formats write it. Raises UsageError for a time without an offset."""
    moment = _now() if now is None else now
    if moment.tzinfo is None:
        raise UsageError("a time needs an offset from UTC", where=str(moment))
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def parse_time(text: str) -> datetime:
    """The moment of a schema-checked time. Raises ValueError if there is no such day or hour."""
    return datetime.fromisoformat(text)


def _entry(line: bytes, where: str) -> Entry:
    """One line as an entry, its form and its body's digest checked."""
    try:
        value = loads_machine(line, where=where)
    except MalformedJson as error:
        raise LedgerFault(error.what, where=where) from None
    _check_schema(value, where)
    assert isinstance(value, dict)
    entry = Entry(**value)
    times = {"/time": entry.time}
    if entry.type == "timestamped":
        times["/body/time"] = entry.body["time"]
    for place, text in times.items():
        try:
            parse_time(text)
        except ValueError as error:
            raise LedgerFault(f"the time {text} does not exist: {error}", where=f"{where}#{place}") from None
    if value_digest(entry.body) != entry.body_sha256:
        raise LedgerFault("body_sha256 is not the digest of the body", where=f"{where}#/body_sha256")
    return entry


def _check_place(entries: Sequence[Entry], entry: Entry, prev: str, where: str) -> None:
    """Check that `entry` may follow `entries`."""
    if entry.seq != len(entries) + 1:
        raise LedgerFault(f"has seq {entry.seq}, not {len(entries) + 1}", where=f"{where}#/seq")
    if entry.prev != prev:
        raise LedgerFault("prev is not the digest of the line before", where=f"{where}#/prev")
    if entries and parse_time(entry.time) < parse_time(entries[-1].time):
        raise LedgerFault("its time is before that of the line before", where=f"{where}#/time")
    if fault := place_fault(entries, entry):
        raise LedgerFault(fault, where=f"{where}#/type")


@functools.cache
def _validators() -> dict[str, Any]:
    """One validator a type: held against its own type's schema, a line's fault is its own."""
    import jsonschema

    schema = loads(
        (schema_folder() / "ledger-entry.schema.json").read_bytes(), where="ledger-entry.schema.json"
    )
    assert isinstance(schema, dict)
    return {
        branch["properties"]["type"]["const"]: jsonschema.Draft202012Validator(
            {**branch, "$defs": schema["$defs"]}
        )
        for branch in schema["oneOf"]
    }


def _check_schema(value: Any, where: str) -> None:
    validators = _validators()
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in validators:
        raise LedgerFault(f"is no ledger entry: its type is {kind!r:.80}", where=f"{where}#/type")
    for error in validators[kind].iter_errors(value):
        raise LedgerFault(error.message[:300], where=f"{where}#{pointer(error.absolute_path)}")
