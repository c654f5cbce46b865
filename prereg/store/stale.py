"""Locks that a killed git left behind, told from those of a git that runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

PROCESSES = Path("/proc")


def remove_stale(locks: Iterable[Path], repository: Iterable[Path]) -> list[Path]:
    """Remove those of `locks` that nobody can be holding, and return them.

    A lock is held if some process has it open, or if a git program works in a folder of `repository`: an
    editor may keep `git commit` waiting for hours, with its lock written and closed. Where the processes
    cannot be listed nothing is removed.
    """
    there = [lock for lock in locks if lock.exists()]
    if not there or _busy({lock.resolve() for lock in there}, [folder.resolve() for folder in repository]):
        return []
    for lock in there:
        lock.unlink(missing_ok=True)
    return there


def _busy(locks: set[Path], folders: list[Path]) -> bool:
    try:
        processes = [p for p in PROCESSES.iterdir() if p.name.isdecimal()]
    except OSError:
        return True
    return not processes or any(_holds(process, locks, folders) for process in processes)


def _holds(process: Path, locks: set[Path], folders: list[Path]) -> bool:
    git = False
    try:
        git = process.joinpath("comm").read_text("utf-8", "replace").startswith("git")
        if git and any(process.joinpath("cwd").readlink().is_relative_to(folder) for folder in folders):
            return True
        return any(fd.readlink() in locks for fd in process.joinpath("fd").iterdir())
    except PermissionError:
        return git  # another user's: what it has open cannot be seen, and git is not trusted to be idle
    except OSError:
        return False  # it has ended meanwhile
