"""One writer at a time: for a study and for trust/, by locks that lie outside, and for other files."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from prereg.errors import WrongState
from prereg.store.layout import StudyPaths

_GUARD = threading.Lock()
_LOCKS: dict[Path, threading.RLock] = {}
_DEPTH: dict[Path, int] = {}


@contextlib.contextmanager
def study_lock(paths: StudyPaths, *, wait: float = 30.0) -> Iterator[None]:
    """Hold the study's lock; the same thread may take it again inside.

    Raises WrongState if another process holds it for longer than `wait` seconds. The lock ends with the
    process, however it ends.
    """
    busy = WrongState(
        "another prereg is writing to this study", where=str(paths.root), next_step="wait until it has ended"
    )
    with held(lock_file(paths), busy, wait=wait):
        yield


def outrun(what: str = "another program added to it meanwhile") -> WrongState:
    """What a verb says whose study another one changed while it worked: it did nothing, and may run again."""
    step = "prereg status DIR, and then the same verb again"
    return WrongState(what, where="ledger.jsonl", next_step=step)


@contextlib.contextmanager
def trust_lock(repository: Path, *, wait: float = 5.0) -> Iterator[None]:
    """Hold the lock of a repository's trust/ while its files are read, changed and written.

    Raises WrongState if another process holds it for longer than `wait` seconds.
    """
    folder = repository.absolute() / "trust"
    busy = WrongState(
        "another prereg is changing who may sign",
        where=str(folder),
        next_step="wait until it has ended, then run this once more",
    )
    with held(_lock_of(folder), busy, wait=wait):
        yield


@contextlib.contextmanager
def held(place: Path, busy: WrongState, *, wait: float = 0.0) -> Iterator[None]:
    """Hold the lock file `place`; the same thread may take it again inside.

    Raises `busy` if another process or thread holds it for longer than `wait` seconds. The lock ends with the
    process, however it ends.
    """
    with _GUARD:
        lock = _LOCKS.setdefault(place, threading.RLock())
    if not lock.acquire(timeout=max(wait, 0.0)):
        raise busy
    try:
        if _DEPTH.get(place, 0):
            _DEPTH[place] += 1
            try:
                yield
            finally:
                _DEPTH[place] -= 1
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _take(fd, busy, wait)
            _DEPTH[place] = 1
            yield
        finally:
            _DEPTH.pop(place, None)
            os.close(fd)
    finally:
        lock.release()


def _take(fd: int, busy: WrongState, wait: float) -> None:
    until = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError:
            if time.monotonic() >= until:
                raise busy from None
            time.sleep(0.05)


def lock_file(paths: StudyPaths) -> Path:
    """Where the study's lock lies: under the repository's .git, else in the user's cache folder."""
    return _lock_of(paths.root)


def _lock_of(root: Path) -> Path:
    root = root.resolve()
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:32] + ".lock"
    for folder in root.parents:
        git = folder / ".git"
        if git.is_dir():
            return git / "prereg" / name
        if git.is_file():
            text = git.read_text("utf-8", "replace").strip()
            if text.startswith("gitdir: "):
                return (folder / text.removeprefix("gitdir: ")).resolve() / "prereg" / name
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "prereg" / "locks" / name
