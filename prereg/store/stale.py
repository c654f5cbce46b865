"""What a killed program left, told from what belongs to one that runs: locks of git, unfinished writes."""

from __future__ import annotations

import glob
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


def remove_unfinished(file: Path) -> None:
    """Remove unfinished writes of `file` (`write_whole`) by processes that are seen to be gone."""
    if not PROCESSES.is_dir():
        return
    for found in file.parent.glob(f".{glob.escape(file.name)}.*.partial"):
        number = found.name.removesuffix(".partial").rpartition(".")[2]
        if number.isdecimal() and not PROCESSES.joinpath(number).exists():
            found.unlink(missing_ok=True)


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
