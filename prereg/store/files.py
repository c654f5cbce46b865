"""Reading a file once without following links, and writing it whole or not at all."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from shlex import quote

from prereg.errors import EvidenceIncomplete, VerificationFailed

MAX_FILE = 256 * 1024 * 1024
"""Most bytes that a file may have, and that a shard may unpack to (docs/formats.md section 1)."""


BlobIds = dict[str, tuple[str, str]]
"""The ids that git gives to the bytes of files that were read, by SHA-1 and by SHA-256, by path."""
_noted: ContextVar[BlobIds | None] = ContextVar("noted", default=None)


@contextmanager
def noting() -> Iterator[BlobIds]:
    """Note the ids of all that is read meanwhile: who compares it later need not open it again."""
    found: BlobIds = {}
    token = _noted.set(found)
    try:
        yield found
    finally:
        _noted.reset(token)


def read_once(path: Path, *, limit: int = MAX_FILE) -> bytes:
    """The bytes of a regular file, opened once and never through a link.

    Raises EvidenceIncomplete if it is missing and VerificationFailed for a link, a special file, or a size
    above `limit`.
    """
    data, _ = read_with_mode(path, limit=limit)
    return data


def read_with_mode(path: Path, *, limit: int = MAX_FILE) -> tuple[bytes, str]:
    """The bytes of a regular file and its git mode, both from one open descriptor."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise EvidenceIncomplete("the file is missing", where=str(path)) from None
    except OSError as error:
        raise VerificationFailed(
            f"cannot be opened as a plain file: {error.strerror}", where=str(path)
        ) from None
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):
        os.close(fd)
        raise VerificationFailed("is not a regular file", where=str(path))
    with os.fdopen(fd, "rb") as handle:
        if info.st_nlink > 1:
            raise VerificationFailed("is a hard link: another name can change it", where=str(path))
        if info.st_size > limit:
            raise VerificationFailed(f"is larger than {limit} bytes", where=str(path))
        data = handle.read(limit + 1)
    if len(data) > limit:
        raise VerificationFailed(f"is larger than {limit} bytes", where=str(path))
    if (noted := _noted.get()) is not None:
        whole = b"blob %d\0" % len(data)
        ids = (hashlib.sha1(whole), hashlib.sha256(whole))
        for one in ids:
            one.update(data)
        noted[str(path)] = (ids[0].hexdigest(), ids[1].hexdigest())
    return data, "100755" if info.st_mode & 0o100 else "100644"


def read_in(root: Path, name: str) -> tuple[bytes, str]:
    """The bytes and mode of a listed file below `root`; errors name it relative to `root`.

    Raises VerificationFailed, also for a file that is missing: something listed it.
    """
    try:
        return read_with_mode(root / name)
    except EvidenceIncomplete as error:
        raise VerificationFailed(error.what, where=name, next_step=f"git checkout -- {quote(name)}") from None
    except VerificationFailed as error:
        raise VerificationFailed(error.what, where=name, next_step=error.next_step) from None


def size_in(root: Path, name: str) -> int:
    """The size of a listed file below `root`, without opening it. Raises VerificationFailed if it is gone."""
    try:
        return (root / name).lstat().st_size
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        raise VerificationFailed(what, where=name, next_step=f"git checkout -- {quote(name)}") from None


def write_whole(path: Path, data: bytes) -> None:
    """Write `data` to `path` so that a crash leaves the old file or the new one, never a part.

    Temporary file in the same folder, fsync, rename, fsync of the folder. The temporary file is always a new
    one: its name can be foretold, so whatever has it already, a link to somewhere else perhaps, is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    fd = _open_new(partial)
    try:
        with os.fdopen(fd, "wb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    sync_folder(path.parent)


def _open_new(path: Path) -> int:
    """A descriptor of a file that was not there before; what has its name is unlinked, never followed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o666)
    except FileExistsError:
        path.unlink()
        return os.open(path, flags, 0o666)


def sync_folder(folder: Path) -> None:
    """Make renames and new names in `folder` durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
