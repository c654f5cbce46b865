"""Opens a study's folder without following links, and reads each file once.

The bytes that are hashed are the bytes that are parsed: a file is opened relative to its directory's
descriptor, read into one buffer, and never opened again.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from audits.__main__ import is_shortage
from audits.fault import Fault, reason
from audits.jsonc import JsonFault, parse, parse_machine

SMALL = 1 << 16
"""The most bytes of a signature, a head or a shard's meta."""
LARGE = 1 << 28
"""The most bytes of any other single file, and of a shard's lines (section 1)."""
LONGEST = 1000
"""The most characters of a path that a manifest can list; so it also bounds how deep folders lie."""
_DIR = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


def sha256(data: bytes) -> str:
    """The digest of the formats page: SHA-256 in lowercase hex."""
    return hashlib.sha256(data).hexdigest()


def moment(text: str, file: str, pointer: str) -> datetime:
    """The moment of an RFC 3339 text the schema already matched; refuses a day that does not exist."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise Fault(f"{text} is not a moment", file=file, pointer=pointer) from None


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the folder."""

    kind: str
    """``file``, ``folder``, ``link``, ``special``, or ``beyond``: at a longer path than any may have."""
    mode: str
    """``100755`` if its owner may execute it, else ``100644``."""
    names: int = 1
    """How many names the file has: its hard links."""


@dataclass(frozen=True, slots=True)
class Read:
    """A file that was read."""

    data: bytes
    digest: str
    mode: str


class Folder:
    """A study's folder, held open."""

    def __init__(self, path: Path) -> None:
        """Opens the folder; a link to a folder is followed here, and only here."""
        self.path = path
        try:
            self._root = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise Fault(f"cannot open the folder: {reason(error)}", file=str(path)) from None
        self.entries: dict[str, Entry] = {}
        self.digests: dict[str, str] = {}
        """The digest of each file read, by path."""
        self._kept: dict[str, Read] = {}

    def close(self) -> None:
        """Release the folder."""
        os.close(self._root)

    def scan(self, skip: tuple[str, ...] = ()) -> None:
        """List everything below the folder, without entering the folders named in ``skip``.

        What lies at a path longer than ``LONGEST`` is listed as ``beyond``, and not entered.
        """
        try:
            self.entries = dict(self._walk(self._root, "", skip))
        except OSError as error:
            raise Fault(f"cannot be listed: {reason(error)}", file=str(error.filename or self.path)) from None

    def _walk(self, descriptor: int, prefix: str, skip: tuple[str, ...]) -> Iterator[tuple[str, Entry]]:
        with os.scandir(descriptor) as listing:
            items = sorted(listing, key=lambda item: item.name)
        for item in items:
            path = prefix + item.name
            status = item.stat(follow_symlinks=False)
            mode = status.st_mode
            if len(path) > LONGEST:
                yield path, Entry("beyond", "")
            elif stat.S_ISLNK(mode):
                yield path, Entry("link", "")
            elif stat.S_ISREG(mode):
                yield path, Entry("file", "100755" if mode & 0o100 else "100644", status.st_nlink)
            elif not stat.S_ISDIR(mode):
                yield path, Entry("special", "")
            else:
                yield path, Entry("folder", "")
                if path in skip:
                    continue
                inner = os.open(item.name, _DIR, dir_fd=descriptor)
                try:
                    yield from self._walk(inner, path + "/", skip)
                finally:
                    os.close(inner)

    def files(self, prefix: str = "") -> list[str]:
        """The paths of the regular files below a prefix."""
        return [path for path, e in self.entries.items() if e.kind == "file" and path.startswith(prefix)]

    def has(self, path: str) -> bool:
        """Whether the scan saw a regular file there."""
        entry = self.entries.get(path)
        return entry is not None and entry.kind == "file"

    def read(self, path: str, limit: int = LARGE, *, keep: bool = True) -> Read:
        """Read a file of at most ``limit`` bytes, and of ``LARGE`` whatever a manifest says of it.

        A second call returns the same buffer.
        """
        if path in self._kept:
            return self._kept[path]
        if path in self.digests:
            raise Fault("read a second time", file=path)
        *folders, name = path.split("/")
        opened: list[int] = []
        try:
            for part in folders:
                opened.append(os.open(part, _DIR, dir_fd=opened[-1] if opened else self._root))
            data, mode = read_regular(name, min(limit, LARGE), opened[-1] if opened else self._root)
        except FileNotFoundError:
            raise Fault("missing", file=path) from None
        except Fault as fault:
            raise fault.at(path) from None
        except OSError as error:
            raise Fault(f"cannot be read: {reason(error)}", file=path) from None
        finally:
            for handle in reversed(opened):
                os.close(handle)
        read = Read(data, sha256(data), "100755" if mode & 0o100 else "100644")
        self.digests[path] = read.digest
        if keep:
            self._kept[path] = read
        return read

    def machine(self, path: str, limit: int = LARGE) -> Any:
        """The value of a machine file: canonical bytes and one newline."""
        try:
            return parse_machine(self.read(path, limit).data)
        except JsonFault as fault:
            raise fault.at(path) from None

    def authored(self, path: str, limit: int = LARGE) -> Any:
        """The value of an authored file: any strict JSON."""
        try:
            return parse(self.read(path, limit).data)
        except JsonFault as fault:
            raise fault.at(path) from None


def read_regular(path: str, limit: int, folder: int | None = None) -> tuple[bytes, int]:
    """The bytes and mode of a regular file, at most ``limit``; no link is followed, no pipe awaited."""
    try:
        descriptor = os.open(path, _FILE, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link; a socket, or a device that is not there
            raise Fault("not a regular file") from None
        raise
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise Fault("not a regular file")
        parts: list[bytes] = []
        left = limit + 1
        while left > 0 and (part := os.read(descriptor, min(left, 1 << 20))):
            parts.append(part)
            left -= len(part)
    finally:
        os.close(descriptor)
    if left <= 0:
        raise Fault(f"larger than the {limit} bytes it may have")
    return b"".join(parts), mode


def inflate(data: bytes, size: int) -> bytes:
    """The content of one gzip member of exactly ``size`` bytes, never holding more than one byte beyond."""
    if size > LARGE or size > 1040 * len(data) + 64:
        raise Fault(f"{len(data)} bytes cannot hold the {size} bytes that lines_size claims, or may not")
    if data[:4] != b"\x1f\x8b\x08\x00":
        raise Fault("not a plain gzip member (no name, no comment, no extra field)")
    if data[4:8] != bytes(4):
        raise Fault("the gzip member's mtime is not 0")
    if data[8:9] != b"\x00":
        raise Fault("the gzip member was not made at level 6")
    member = zlib.decompressobj(wbits=31)
    try:
        lines = member.decompress(data, size + 1)
        if len(lines) <= size and not member.eof:
            lines += member.decompress(member.unconsumed_tail, size + 1 - len(lines))
    except zlib.error as error:
        if is_shortage(error):
            raise
        raise Fault(f"not a gzip member: {error}") from None
    if len(lines) > size:
        raise Fault(f"inflates beyond the {size} bytes of lines_size")
    if not member.eof:
        raise Fault("the gzip member is cut short")
    if member.unused_data or member.unconsumed_tail:
        raise Fault("bytes after the gzip member")
    if len(lines) != size:
        raise Fault(f"inflates to {len(lines)} bytes, not the {size} of lines_size")
    return lines
