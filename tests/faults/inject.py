"""Ends the process at its N-th durable step, as `kill -9` of the whole group does, or a power cut.

A durable step is a call that changes what a later run finds: fsync, rename, link, a write to a regular file,
a cut of one, a removal, and each run of git that writes, here or to a remote. `arm` replaces functions of the
process that it is called in, which is to be thrown away.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Literal

GIT_WRITES = {"hash-object", "update-index", "write-tree", "commit-tree", "update-ref", "read-tree", "push"}
CALLS = ("fsync", "replace", "rename", "link", "write", "ftruncate", "unlink", "rmdir")
TEMPORARY = ("/prereg-", "/audit-")
"""How folders begin that a verb makes for itself outside of the study: no evidence lies there."""
Part = Literal["before", "torn", "after"]
TORN = ("fsync", "write", "git")
"""Steps that can be left half done."""


def arm(log: Path, nth: int = 0, part: Part = "before") -> None:
    """Note every step in `log`, and die before the N-th, in its middle, or after it.

    A torn write has written half of its bytes. A torn fsync loses half of what was written since the last
    one, as a power cut does. A torn run of git is killed a moment after it began, where it may have ended.
    """
    _Steps(log, nth, part).install()


class _Steps:
    def __init__(self, log: Path, nth: int, part: Part) -> None:
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._nth = nth
        self._part = part
        self._count = 0
        self._synced: dict[int, int] = {}
        self._real = {name: getattr(os, name) for name in CALLS}

    def install(self) -> None:
        for name, real in self._real.items():
            setattr(os, name, self._wrapped(name, real))
        begin = subprocess.Popen.__init__

        def started(process: Any, command: Any, *given: Any, **more: Any) -> None:
            git = isinstance(command, list) and command[:1] == ["git"] and bool(GIT_WRITES & {*command})
            due = git and self._reached("git")
            if due and self._part == "before":
                self._die()
            begin(process, command, *given, **more)
            if due and self._part == "after":
                process.wait()
            if due:
                time.sleep(0.001 * (self._nth % 4))
                self._die()

        subprocess.Popen.__init__ = started  # type: ignore[method-assign]

    def _wrapped(self, name: str, real: Any) -> Any:
        def called(*given: Any, **more: Any) -> Any:
            if self._counts(name, given, more) and self._reached(name):
                if self._part == "torn" and name == "write":
                    real(given[0], bytes(given[1])[: len(given[1]) // 2])
                if self._part == "torn" and name == "fsync":
                    self._lose_half(given[0])
                if self._part == "after":
                    real(*given, **more)
                self._die()
            if name == "write" and self._is_file(given[0]):
                self._synced.setdefault(given[0], os.fstat(given[0]).st_size)
            done = real(*given, **more)
            if name == "fsync":
                self._synced.pop(given[0], None)
            return done

        return called

    def _counts(self, name: str, given: tuple[Any, ...], more: dict[str, Any]) -> bool:
        # Only the main thread writes evidence; the others speak to workers.
        if threading.current_thread() is not threading.main_thread():
            return False
        if name == "write":
            return self._is_file(given[0])
        folder = more.get("dir_fd") if not isinstance(given[0], int) else given[0]
        place = "" if folder is None else os.readlink(f"/proc/self/fd/{folder}")
        return not any(part in f"{place}/{given[0]}" for part in TEMPORARY)

    def _is_file(self, descriptor: int) -> bool:
        return descriptor > 2 and stat.S_ISREG(os.fstat(descriptor).st_mode)

    def _reached(self, name: str) -> bool:
        self._count += 1
        self._real["write"](self._log, f"{name}\n".encode())
        return self._count == self._nth

    def _lose_half(self, descriptor: int) -> None:
        if self._is_file(descriptor):
            size, kept = os.fstat(descriptor).st_size, self._synced.get(descriptor, 0)
            self._real["ftruncate"](descriptor, kept + (size - kept) // 2)

    def _die(self) -> None:
        os.killpg(0, signal.SIGKILL)
        signal.pause()
