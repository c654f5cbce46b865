"""What each run of a collection really took, kept beside the study's unfinished trees for the run after it.

The ledger's times tell that too, but not as well: a machine that slept adds to them, and a clock that jumped
did before runs had clocks of their own. A journal is this machine's own note, no evidence, and may be gone.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from prereg.codec.canonical import Json, dump_file, loads_machine
from prereg.errors import PreregError
from prereg.store.files import read_once, write_whole

SCHEMA = "prereg/run-journal/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """What a run took until it was to make entry `seq`, by a clock that stops while the machine sleeps."""

    seq: int
    study: float
    """Seconds of the run."""
    units: Mapping[str, float]
    """Seconds that workers were at each unit."""


class RunJournal:
    """The journal of one run, which the digest of its `collection-started` line tells from every other.

    Copies of a study have one seal and one folder, but no such line in common.
    """

    def __init__(self, folder: Path, run: str) -> None:
        self._path = folder / f"run-{run}.json"
        self._run = run

    def keep(self, took: Took) -> None:
        """Write it anew, whole or not at all.

        Where it cannot be written the run goes on: what is missing of it the ledger's times tell.
        """
        units: dict[str, Json] = {unit: round(seconds, 3) for unit, seconds in took.units.items()}
        value: dict[str, Json] = {
            "schema": SCHEMA,
            "run": self._run,
            "seq": took.seq,
            "study": round(took.study, 3),
            "units": units,
        }
        with contextlib.suppress(OSError):
            write_whole(self._path, dump_file(value))

    def read(self) -> Took | None:
        """What it says; None if it is missing, or is not what `keep` writes."""
        try:
            value = loads_machine(read_once(self._path), where=self._path.name)
        except (PreregError, OSError):
            return None
        if not isinstance(value, dict) or (value.get("schema"), value.get("run")) != (SCHEMA, self._run):
            return None
        seq, study, units = value.get("seq"), value.get("study"), value.get("units")
        if not isinstance(seq, int) or isinstance(seq, bool) or not _is_seconds(study):
            return None
        if not isinstance(units, dict) or not all(map(_is_seconds, units.values())):
            return None
        return Took(seq=seq, study=_seconds(study), units={u: _seconds(s) for u, s in units.items()})


def _is_seconds(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def _seconds(value: Json) -> float:
    assert isinstance(value, int | float)
    return float(value)
