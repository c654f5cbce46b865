"""What earlier runs of a collection took: by their journals on this machine, else by the ledger's times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from prereg.collect.ceilings import Spent, by_ledger, runs_of
from prereg.collect.run_journal import RunJournal
from prereg.errors import WrongState
from prereg.model.plural import plural
from prereg.model.seal import Entry
from prereg.model.study import Ceilings
from prereg.seal.metas import read_meta
from prereg.seal.verified import VerifiedStudy
from prereg.store.files import read_once
from prereg.store.ledger import parse_time

Times = Literal["count", "leave-out"]
"""What is to become of the ledger's times, where they alone tell what a run took."""
OPTION = "--ledger-times"


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """What earlier runs took, apart by what tells it."""

    known: Spent = field(default_factory=Spent)
    """By journals of this machine."""
    told: Spent = field(default_factory=Spent)
    """By the ledger's times."""
    untold: int = 0
    """Runs without a journal here."""

    def study(self) -> float:
        """Seconds of the study."""
        return self.known.study + self.told.study

    def units(self) -> dict[str, float]:
        """Seconds of workers at each unit."""
        both = Spent(units=dict(self.known.units))
        both.add(0.0, self.told.units)
        return both.units


def earlier_runs(
    verified: VerifiedStudy, journals: Path, times: Times | None, note: Callable[[str], None]
) -> Earlier:
    """What the runs that the ledger tells of took.

    A clock that jumped under such a run, or a machine that slept, adds to the ledger's times, and what a
    ceiling takes is lost for good. So a ceiling that is reached by them alone, before anything is drawn, is
    WrongState unless `times` says what to do.
    """
    ceilings = verified.study.protocol.ceilings
    known, told, untold = Spent(), Spent(), 0

    def seconds_of(entry: Entry) -> float:
        body = entry.body
        file = verified.paths.shard_meta(body["unit"], body["shard"], body["attempt"])
        meta = read_meta(read_once(file), where=str(file))
        return (parse_time(meta.ended) - parse_time(meta.started)).total_seconds()

    for run in runs_of(verified.entries, verified.head):
        took = RunJournal(journals, run.digest).read()
        # A journal that could not be written for a while lacks the entries after it.
        rest = by_ledger(run, ceilings, seconds_of, after=0 if took is None else took.seq)
        told.add(rest.study, rest.units)
        if took is not None:
            known.add(took.study, took.units)
        elif rest.study:
            untold += 1
    found = Earlier(known=known, told=told, untold=untold)
    if untold:
        word = f"{untold} earlier {plural(untold, 'run')} left no journal here"
        note(f"{word}: by the ledger's times all earlier runs took {found.study():,.0f} s")
    if times == "leave-out":
        return Earlier(known=known)
    if times is None:
        _refuse(found, verified, ceilings)
    return found


def _refuse(found: Earlier, verified: VerifiedStudy, ceilings: Ceilings) -> None:
    """Raise WrongState for a ceiling that only the ledger's times say was reached."""
    what = ""
    if found.known.study < ceilings.study_seconds <= found.study():
        what = f"earlier runs took {found.study():,.0f} s, and the study's ceiling is "
        what += f"{ceilings.study_seconds:,} s"
    else:
        missing = {shard.unit.id for shard in verified.missing()}
        for unit, seconds in sorted(found.units().items()):
            if unit in missing and found.known.units.get(unit, 0.0) < ceilings.unit_seconds <= seconds:
                what = f"{unit} took {seconds:,.0f} s, and the ceiling of a unit is "
                what += f"{ceilings.unit_seconds:,} s"
                break
    if what:
        command = f"prereg collect {verified.paths.root} {OPTION}"
        raise WrongState(
            f"by the ledger's times alone {what}; a clock that jumped, or a machine that slept, adds to such "
            "times, and what a ceiling takes is lost for good",
            where=str(verified.paths.ledger),
            next_step=f"{command} count, if it was reached; {command} leave-out, if it was not",
        )
