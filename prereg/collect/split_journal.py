"""Finished parts of a walk on disk, one line each, so that a walk that was killed goes on where it was."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from pathlib import Path
from typing import Any, BinaryIO

from prereg.codec.canonical import Json, value_digest
from prereg.errors import UsageError, WrongState

SCHEMA = "prereg/walk-journal/v1"


class Journal:
    """Parts by their requests. Without a path it keeps nothing.

    `identity` is the digest of all that the parts depend on (configuration, model, code, environment): a
    journal of another identity is not this walk's: UsageError. From the first line on that a crash cut short,
    or that is no part, everything is dropped. A journal that another walk is writing is WrongState, or, if it
    is not `required`, not used.
    """

    def __init__(self, path: Path | None, identity: str, *, required: bool = True) -> None:
        self._path = path
        self._identity = identity
        self._parts: dict[str, dict[str, Any]] = {}
        self._file: BinaryIO | None = None
        self._guard = threading.Lock()
        if path is not None:
            self._open(path, required)

    def _open(self, path: Path, required: bool) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            sound = self._read(path)
        except BlockingIOError:
            file.close()
            if required:
                raise WrongState("another walk is writing this journal", where=str(path)) from None
            return
        except BaseException:
            file.close()
            raise
        self._file = file
        self._file.truncate(sound)
        if not sound:
            self._write({"schema": SCHEMA, "identity": self._identity})

    def _read(self, path: Path) -> int:
        """Take the whole lines of a journal; return how many bytes they are."""
        sound = 0
        with path.open("rb") as file:
            for number, line in enumerate(file):
                value = _parsed(line)
                if number == 0 and line.endswith(b"\n") and value.get("identity") != self._identity:
                    raise UsageError(
                        "this is the journal of another walk, or of other code, or no journal",
                        where=str(path),
                        next_step="name another file, or remove this one",
                    )
                key, part = value.get("key"), value.get("part")
                if not line.endswith(b"\n") or not value:
                    break
                if number:
                    if not isinstance(key, str) or not isinstance(part, dict) or not part:
                        break
                    self._parts[key] = part
                sound += len(line)
        return sound

    @property
    def finished(self) -> int:
        """Parts that are there."""
        return len(self._parts)

    def part(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """The finished part that this request asked for, if it is there."""
        with self._guard:
            return self._parts.get(_key(request))

    def keep(self, request: dict[str, Any], part: dict[str, Any]) -> None:
        """Add a finished part, durably."""
        with self._guard:
            if self._file is not None:
                self._write({"key": _key(request), "part": part})

    def _write(self, value: dict[str, Any]) -> None:
        assert self._file is not None
        self._file.write(json.dumps(value, separators=(",", ":"), sort_keys=True).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self, remove: bool = False) -> None:
        """Close the file, and remove it if it has done its duty."""
        with self._guard:
            if self._file is not None:
                self._file.close()
                self._file = None
                if remove and self._path is not None:
                    self._path.unlink(missing_ok=True)


def _key(request: dict[str, Any]) -> str:
    value: Json = request
    return value_digest(value)


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
