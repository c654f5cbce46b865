"""The finished cases of a sweep, kept while it runs, so that a killed one goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path

from prereg.codec.canonical import value_digest
from prereg.collect.runtime import cache_folder
from prereg.errors import WrongState
from prereg.model.sweep import Row, Try
from prereg.store.files import read_once
from prereg.store.harness import harness_digest
from prereg.store.layout import distribution_root
from prereg.store.lock import held

JUDGING = ("model", "codec", "stats", "store", "collect", "analyse", "draft", "cli")
"""Rooms of prereg that a verdict comes from: whole, so that none of their modules can be forgotten."""


def judge_digest(package: Path | None = None) -> str:
    """The digest of prereg's own code that walks and judges cases (as `harness_digest` counts it).

    A verdict must not outlive a correction of what found it. `package` is the folder of prereg (default:
    this installation's).
    """
    package = distribution_root() / "prereg" if package is None else package
    paths = (path for room in JUDGING for path in (package / room).rglob("*.py"))
    return harness_digest({path.relative_to(package).as_posix(): read_once(path) for path in paths})


def state_file(fingerprint: str, table: str, harness: str, judge: str, drafter: str) -> Path:
    """Where finished cases are kept: another of anything named here has another file."""
    key = value_digest([fingerprint, table, harness, judge, drafter])
    return cache_folder() / "sweeps" / f"{key[:24]}.jsonl"


def one_sweep(path: Path) -> AbstractContextManager[None]:
    """Hold a state file for one sweep. Raises WrongState while another process holds it."""
    busy = WrongState(
        "another sweep of this build, with this drafter, is running",
        where=str(path),
        next_step="wait until it has ended, then: prereg sweep --resume",
    )
    return held(path.with_suffix(".lock"), busy)


class State:
    """Rows, one a line, each on the disk as soon as its case is done. `anew` are cases to forget."""

    def __init__(self, path: Path, *, anew: Collection[str] = ()) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.rows = {row.case: row for row in _read(path) if row.case not in anew}
        # Written anew: what a kill left half-written at the end must not join the next line.
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text("".join(_line(row) for row in self.rows.values()))
        temporary.replace(path)

    def add(self, row: Row) -> None:
        """Keep a finished case."""
        self.rows[row.case] = row
        with self.path.open("a") as stream:
            stream.write(_line(row))
            stream.flush()
            os.fsync(stream.fileno())


def row_json(row: Row) -> dict[str, object]:
    """A row as JSON."""
    return asdict(row)


def _line(row: Row) -> str:
    return json.dumps(row_json(row)) + "\n"


def _read(path: Path) -> Iterable[Row]:
    if not path.is_file():
        return
    for line in path.read_text().splitlines():
        try:
            value = json.loads(line)
            tried = value.pop("tried")
            yield Row(**value, tried=None if tried is None else Try(**tried))
        except (ValueError, TypeError, AttributeError, KeyError):
            return  # the line that a kill cut off is the last
