"""One case of a sweep: tried on sealed models and prompts until a try says something.

A single tiny model with a truncating sampler leaves a handful of outcomes, and a feature that is set may
change nothing: equality there tests nothing. So a case is looked at through the oracle first, which costs
little, and walked through the engine where the feature is active and outcomes are many.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from prereg.collect.sweep_table import uncovered_row
from prereg.collect.sweep_walk import RUNS, Lane
from prereg.collect.worker import WorkerLost, WorkerRefused
from prereg.model.law import Crashed, Outcome
from prereg.model.sweep import DEPARTURES, OUTCOME_MASS, Case, Row, SweepVerdict, Try
from prereg.model.tree import ExactResult, Tree

ACTIVE = 1e-6
"""Total variation of two plain laws above which a feature is active."""

TELLING = 1e-3
"""Total variation that is looked for before a try is walked."""

OUTCOMES = 20
"""Outcomes that equality must rest on."""

WALKED = 3
"""Tries that are walked at most."""

EXPLAINED = 10
"""Failing paths that are handed to the engine side to be explained, at most."""

CONCLUSIVE = (*DEPARTURES, "EQUAL_WITHIN_TOLERANCE", "BOTH_CRASH")
"""Verdicts after which no further try is made."""

BASELINE_RUNS = 400
CRASH_MASS = 1e-6
BAD_REQUEST = "bad-request"


class Judge(Protocol):
    """What the analysis says of trees."""

    def law(self, tree: Tree) -> Mapping[Outcome, float]:
        """The explored mass of each outcome."""
        ...

    def decide(self, off: Tree, on: Tree, case: Case, tried: Try) -> ExactResult:
        """The exact channel's verdict."""
        ...

    def failing(self, off: Tree, on: Tree) -> Sequence[Sequence[int]]:
        """Paths of the on arm that depart, most telling first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    """What plain sampling alone tells of a try."""

    tried: Try
    activity: dict[str, float]
    outcomes: int

    @property
    def telling(self) -> bool:
        """Whether it is worth walking before others are looked at."""
        return self.outcomes >= OUTCOMES and self.least >= TELLING

    @property
    def least(self) -> float:
        """The activity of the least active feature; 1 without features."""
        return min(self.activity.values(), default=1.0)

    @property
    def order(self) -> tuple[bool, bool, float, int]:
        """Better ones are larger."""
        return self.least > ACTIVE, self.outcomes >= OUTCOMES, min(self.least, TELLING), self.outcomes


def run_case(case: Case, lane: Lane, judge: Judge, runs: int = RUNS) -> Row:
    """Try a case until a try says something; the row of the best try.

    A worker that is lost on the on arm alone is the engine's crash; one that is lost elsewhere makes the try
    void. Never raises for what an engine does.
    """
    began = time.monotonic()
    best: Row | None = None
    attempts = 0
    for attempts, screened in enumerate(_worth_walking(case, lane, judge), start=1):
        row = screened if isinstance(screened, Row) else walked(case, screened, lane, judge, runs)
        best = row if best is None else max(best, row, key=_telling)
        if best.verdict in CONCLUSIVE or attempts == WALKED:
            break
    if best is None:
        best = _row(case, "INCONCLUSIVE", "the table gives it no try")
    return replace(best, attempts=attempts, seconds=round(time.monotonic() - began, 3))


def _worth_walking(case: Case, lane: Lane, judge: Judge) -> Iterator[Screened | Row]:
    """Telling tries as they are found, then the others from the best down; a row for one that fails."""
    later: list[Screened] = []
    for tried in case.tries:
        try:
            found = screen(case, tried, lane, judge)
        except WorkerRefused as refused:
            if refused.code == BAD_REQUEST:
                yield replace(_row(case, "INCONCLUSIVE", f"refused: {refused.message}"), tried=tried)
                return
            found = Screened(tried=tried, activity={}, outcomes=0)
        except WorkerLost as lost:
            lane.close()
            yield replace(_row(case, "VOID", f"plain sampling could not be looked at: {lost}"), tried=tried)
            continue
        if found.telling:
            yield found
        else:
            later.append(found)
    yield from sorted(later, key=lambda one: one.order, reverse=True)


def screen(case: Case, tried: Try, lane: Lane, judge: Judge) -> Screened:
    """How many outcomes plain sampling has, and how far each feature moves its law."""
    whole = {**case.beside, **case.features}
    law = _plain(whole, tried, lane, judge)
    activity = {}
    for name in case.features:
        without = {key: value for key, value in whole.items() if key != name}
        activity[name] = distance(law, _plain(without, tried, lane, judge))
    return Screened(tried=tried, activity=activity, outcomes=counted(law))


def _plain(features: Mapping[str, Any], tried: Try, lane: Lane, judge: Judge) -> Mapping[Outcome, float]:
    """The law of plain sampling: the oracle's, or walked where there is none."""
    lane.open(features, tried)
    try:
        return lane.law()
    except WorkerRefused:
        return judge.law(lane.walk(False, BASELINE_RUNS))


def walked(case: Case, screened: Screened, lane: Lane, judge: Judge, runs: int) -> Row:
    """Walk both arms of a try and judge them."""
    try:
        lane.open({**case.beside, **case.features}, screened.tried)
        off = lane.walk(False, runs)
    except (WorkerLost, WorkerRefused) as error:
        return _failed(case, screened, lane, error, "VOID", "without speculation")
    try:
        on = lane.walk(True, runs)
    except WorkerRefused as error:
        return _failed(case, screened, lane, error, "VOID", "with speculation")
    except WorkerLost as error:
        return _failed(case, screened, lane, error, "CRASHES", "with speculation, and only then,")
    result = judge.decide(off, on, case, screened.tried)
    crashes = crash_masses(judge.law(off)), crash_masses(judge.law(on))
    screened = replace(screened, outcomes=counted(judge.law(off)))
    verdict, reason = verdict_of(result, screened, *crashes)
    path = None
    if verdict in DEPARTURES:
        try:
            path = lane.explain(on, judge.failing(off, on)[:EXPLAINED])
        except (WorkerLost, WorkerRefused):
            lane.close()  # what departs is known; only why is not
    return replace(
        _row(case, verdict, reason),
        tried=screened.tried,
        tv_lower=result.tv_lower,
        tv_upper=result.tv_upper,
        witness_mass=result.witness_mass,
        event=result.event,
        event_gap=result.event_gap,
        activity=screened.activity,
        outcomes=screened.outcomes,
        proposals=result.proposals,
        accepted=result.accepted,
        runs_off=off.runs,
        runs_on=on.runs,
        crash_off=crashes[0],
        crash_on=crashes[1],
        failing_path=path,
    )


def verdict_of(
    result: ExactResult, screened: Screened, crash_off: Mapping[str, float], crash_on: Mapping[str, float]
) -> tuple[SweepVerdict, str]:
    """The verdict of a row, from the exact channel's and from what it rests on, and why.

    A departure is one whatever it rests on; equality is none where the feature was not active, nothing was
    proposed or accepted, or too few outcomes could differ.
    """
    off, on = math.fsum(crash_off.values()), math.fsum(crash_on.values())
    if on > off + CRASH_MASS:
        before = "without it never" if off == 0 else f"without it with mass {off:.3g}"
        return "CRASHES", f"speculation raises {', '.join(crash_on)} with mass {on:.3g}, {before}"
    if off >= 1.0 - CRASH_MASS:
        return "BOTH_CRASH", f"both arms raise {', '.join(crash_off)}: the feature cannot be used at all"
    if result.verdict != "EQUAL_WITHIN_TOLERANCE":
        return result.verdict, result.reason
    lacking = [f"{name} changed nothing" for name, tv in screened.activity.items() if tv <= ACTIVE]
    if screened.outcomes < OUTCOMES:
        lacking.append(f"only {screened.outcomes} outcomes")
    if result.accepted == 0:
        lacking.append("no proposed token was accepted")
    if lacking:
        return "INCONCLUSIVE", f"equal, but {' and '.join(lacking)} on the best try"
    return "EQUAL_WITHIN_TOLERANCE", result.reason


def crash_masses(law: Mapping[Outcome, float]) -> dict[str, float]:
    """The mass of each type of crash."""
    return {outcome.crash: p for outcome, p in law.items() if isinstance(outcome, Crashed)}


def counted(law: Mapping[Outcome, float]) -> int:
    """How many outcomes have some mass."""
    return sum(p >= OUTCOME_MASS for p in law.values())


def distance(a: Mapping[Outcome, float], b: Mapping[Outcome, float]) -> float:
    """Total variation of two whole laws."""
    return math.fsum(abs(a.get(key, 0.0) - b.get(key, 0.0)) for key in {*a, *b}) / 2


def _telling(row: Row) -> tuple[bool, bool, bool, int]:
    verdicts = row.verdict in DEPARTURES, row.verdict == "EQUAL_WITHIN_TOLERANCE", row.verdict == "BOTH_CRASH"
    return *verdicts, row.outcomes if row.accepted else 0


def _row(case: Case, verdict: SweepVerdict, reason: str) -> Row:
    row = uncovered_row(case.name, reason)
    return replace(
        row,
        verdict=verdict,
        features=case.features,
        beside=case.beside,
        source=case.source,
        note=case.note,
    )


def _failed(
    case: Case,
    screened: Screened,
    lane: Lane,
    error: WorkerLost | WorkerRefused,
    verdict: SweepVerdict,
    when: str,
) -> Row:
    if isinstance(error, WorkerLost):
        lane.close()
    row = _row(case, verdict, f"{when} {error}")
    return replace(row, tried=screened.tried, activity=screened.activity, outcomes=screened.outcomes)
