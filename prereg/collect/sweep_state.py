"""The finished cases of a sweep, kept while it runs, so that a killed one goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable
from dataclasses import asdict
from pathlib import Path

from prereg.codec.canonical import value_digest
from prereg.collect.runtime import cache_folder
from prereg.model.sweep import Row, Try


def state_file(fingerprint: str, table: str, harness: str, drafter: str) -> Path:
    """Where finished cases are kept: another environment, table, harness or drafter has another file."""
    key = value_digest([fingerprint, table, harness, drafter])
    return cache_folder() / "sweeps" / f"{key[:24]}.jsonl"


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
