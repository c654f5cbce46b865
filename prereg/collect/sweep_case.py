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

from prereg.codec.convert import to_json
from prereg.collect.activity import ACTIVE, distance, lacking
from prereg.collect.sweep_table import uncovered_row
from prereg.collect.sweep_walk import RUNS, Lane
from prereg.collect.worker import WorkerLost, WorkerRefused
from prereg.model.law import Crashed, Outcome
from prereg.model.sweep import DEPARTURES, OUTCOME_MASS, Case, Row, SweepVerdict, Try
from prereg.model.tree import ExactResult, Tree

OUTCOMES = 20
"""Outcomes that equality must rest on."""

WALKED = 4
"""Tries that are walked at most."""

SILENT = 2
"""Tries that are walked at most where a feature changes nothing: what could be found is a departure."""

EQUAL: SweepVerdict = "EQUAL_WITHIN_TOLERANCE"

AGREEING = 2
"""Equal tries after which no further one is made."""

AGREEING_IF_DETERMINISTIC = 10
"""Tries with the same single outcome on both arms that equality must rest on."""

ONE_OUTCOME = "equal, with one outcome"

BASELINE_RUNS = 400
CRASH_MASS = 1e-6
WHOLE = 1e-9
"""Slack that counts as none (docs/formats.md section 14)."""

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
        """Paths of the on arm that depart, as many as are to be explained, most telling first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    """What plain sampling alone tells of a try."""

    tried: Try
    features: tuple[str, ...]
    """Those that must be active."""

    activity: dict[str, float]
    """Of those of which it could be told."""

    outcomes: int

    @property
    def telling(self) -> bool:
        """Whether it is worth walking before others are looked at."""
        return self.outcomes >= OUTCOMES and self.least > ACTIVE

    @property
    def least(self) -> float:
        """The activity of the least active feature, 0 for one that is not known; 1 without features."""
        return min((self.activity.get(name, 0.0) for name in self.features), default=1.0)

    @property
    def order(self) -> tuple[bool, int, float]:
        """Better ones are larger."""
        return self.least > ACTIVE, min(self.outcomes, 2 * OUTCOMES), self.least


def run_case(case: Case, lane: Lane, judge: Judge, runs: int = RUNS) -> Row:
    """Try a case until a try departs or enough of them are equal; the row of the try that says most.

    A worker that is lost on the on arm alone is the engine's crash; one that is lost elsewhere makes the try
    void. Never raises for what an engine does.
    """
    began = time.monotonic()
    rows: list[Row] = []
    for screened in _worth_walking(case, lane, judge):
        rows.append(screened if isinstance(screened, Row) else walked(case, screened, lane, judge, runs))
        if rows[-1].verdict in DEPARTURES:
            break
        agreeing = sum(row.verdict == EQUAL for row in rows)
        if not case.deterministic and (agreeing == AGREEING or len(rows) == WALKED):
            break
    row = _together(case, rows) if rows else _row(case, "INCONCLUSIVE", "the table gives it no try")
    return replace(row, attempts=len(rows), seconds=round(time.monotonic() - began, 3))


def _together(case: Case, rows: Sequence[Row]) -> Row:
    """The row of the try that says most; where each try has one outcome, they are added up."""
    best = max(rows, key=_telling)
    agreeing = sum(row.verdict == EQUAL for row in rows)
    if not case.deterministic or best.verdict != "INCONCLUSIVE":
        return replace(best, agreeing=agreeing)
    alike = [row for row in rows if row.reason == ONE_OUTCOME]
    if len(alike) < len(rows) or len(alike) < AGREEING_IF_DETERMINISTIC:
        return best
    found = replace(
        best,
        agreeing=len(alike),
        outcomes=sum(row.outcomes for row in alike),
        proposals=sum(row.proposals for row in alike),
        accepted=sum(row.accepted for row in alike),
        runs_off=sum(row.runs_off for row in alike),
        runs_on=sum(row.runs_on for row in alike),
        activity={
            name: max(row.activity[name] for row in alike if name in row.activity)
            for name in case.features
            if any(name in row.activity for row in alike)
        },
    )
    if lacks := lacking(case.features, found.activity, found.accepted):
        return replace(found, reason=f"the same outcome on {len(alike)} tries, but {' and '.join(lacks)}")
    return replace(found, verdict=EQUAL, reason=f"the same outcome on each of {len(alike)} tries")


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
            found = Screened(tried=tried, features=tuple(case.features), activity={}, outcomes=0)
        except WorkerLost as lost:
            lane.close()
            yield replace(_row(case, "VOID", f"plain sampling could not be looked at: {lost}"), tried=tried)
            continue
        if found.telling or case.deterministic:
            yield found
        else:
            later.append(found)
    later.sort(key=lambda one: one.order, reverse=True)
    yield from (one for at, one in enumerate(later) if at < SILENT or one.least > ACTIVE)


def screen(case: Case, tried: Try, lane: Lane, judge: Judge) -> Screened:
    """How many outcomes plain sampling has, and how far each feature moves its law."""
    whole = {**case.beside, **case.features}
    law = _plain(whole, tried, lane, judge)
    activity = {}
    for name in case.features:
        without = {key: value for key, value in whole.items() if key != name}
        activity[name] = distance(law, _plain(without, tried, lane, judge))
    return Screened(tried=tried, features=tuple(case.features), activity=activity, outcomes=counted(law))


def _plain(features: Mapping[str, Any], tried: Try, lane: Lane, judge: Judge) -> Mapping[Outcome, float]:
    """The law of plain sampling: the oracle's, or as much as a short walk finds where there is none."""
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
    except WorkerRefused as error:
        return _both(case, screened, lane) or _failed(
            case, screened, lane, error, "VOID", "without speculation"
        )
    except WorkerLost as error:
        return _failed(case, screened, lane, error, "VOID", "without speculation")
    try:
        on = lane.walk(True, runs)
    except WorkerRefused as error:
        return _failed(case, screened, lane, error, "VOID", "with speculation")
    except WorkerLost as error:
        return _died(case, screened, lane, error)
    result = judge.decide(off, on, case, screened.tried)
    crashes = crash_masses(judge.law(off)), crash_masses(judge.law(on))
    screened = replace(screened, outcomes=counted(judge.law(off)))
    verdict, reason = verdict_of(result, screened, *crashes, case.deterministic)
    path = _path(lane, off, on, judge) if verdict in DEPARTURES else None
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


def _path(lane: Lane, off: Tree, on: Tree, judge: Judge) -> dict[str, Any] | None:
    """The shortest failing path, as far as it can be explained."""
    paths = judge.failing(off, on)
    try:
        found = lane.explain(on, paths) if paths else None
    except WorkerRefused:
        found = None
    except WorkerLost:
        found = None
        lane.close()
    if found is None and paths:  # without an oracle the outcome is all there is
        leaf = next(leaf for leaf in on.leaves if leaf.choices == tuple(paths[0]))
        found = {"choices": list(leaf.choices), "outcome": to_json(leaf.outcome), "what": "unknown"}
        if len(off.leaves) == 1:
            found["plain"] = to_json(off.leaves[0].outcome)
    return found


def verdict_of(
    result: ExactResult,
    screened: Screened,
    crash_off: Mapping[str, float],
    crash_on: Mapping[str, float],
    deterministic: bool = False,
) -> tuple[SweepVerdict, str]:
    """The verdict of a row, from the exact channel's and from what it rests on, and why.

    Of trees that are not admitted nothing is said. A departure is one whatever it rests on, but what the off
    arm left unexplored may crash too, so that only more than that is speculation's own. Equality is none
    where a feature was not active, nothing was proposed or accepted, or too few outcomes could differ.
    """
    if result.verdict == "VOID":
        return result.verdict, result.reason
    off, on = math.fsum(crash_off.values()), math.fsum(crash_on.values())
    most = off + result.slack_off
    if on > most + CRASH_MASS:
        before = "without it never" if off == 0 else f"without it with mass {off:.3g}"
        if result.slack_off > WHOLE:
            before = f"without it with mass at most {most:.3g}"
        return "CRASHES", f"speculation raises {', '.join(crash_on)} with mass {on:.3g}, {before}"
    if off >= 1.0 - CRASH_MASS:
        return "BOTH_CRASH", f"both arms raise {', '.join(crash_off)}: the feature cannot be used on this try"
    if result.verdict != EQUAL:
        return result.verdict, result.reason
    if deterministic and screened.outcomes == 1:
        return "INCONCLUSIVE", ONE_OUTCOME
    lacks = lacking(screened.features, screened.activity, result.accepted)
    if screened.outcomes < OUTCOMES:
        lacks.append(f"there were only {screened.outcomes} outcomes")
    if lacks:
        return "INCONCLUSIVE", f"equal, but {' and '.join(lacks)} on the best try"
    return EQUAL, result.reason


def crash_masses(law: Mapping[Outcome, float]) -> dict[str, float]:
    """The mass of each type of crash."""
    return {outcome.crash: p for outcome, p in law.items() if isinstance(outcome, Crashed)}


def counted(law: Mapping[Outcome, float]) -> int:
    """How many outcomes have some mass."""
    return sum(p >= OUTCOME_MASS for p in law.values())


def _died(case: Case, screened: Screened, lane: Lane, error: WorkerLost) -> Row:
    """The row of a try whose on arm cost the worker: the engine's crash if a single request does so again."""
    lane.close()
    try:
        lane.open({**case.beside, **case.features}, screened.tried)
        lane.draw(False)
        lane.draw(True)
    except WorkerLost as again:
        return _failed(case, screened, lane, again, "CRASHES", "with speculation, and only then,")
    except WorkerRefused:
        pass  # the walk's failure is the one to tell
    return _failed(case, screened, lane, error, "VOID", "with speculation")


def _both(case: Case, screened: Screened, lane: Lane) -> Row | None:
    """The row of a try on which an ordinary request crashes on either arm; None if one comes through."""
    try:
        off, on = lane.draw(False), lane.draw(True)
    except (WorkerLost, WorkerRefused):
        return None
    if not isinstance(off, Crashed) or not isinstance(on, Crashed):
        return None
    kinds = ", ".join(sorted({off.crash, on.crash}))
    return replace(
        _row(case, "BOTH_CRASH", f"both arms raise {kinds}: the feature cannot be used on this try"),
        tried=screened.tried,
        crash_off={off.crash: 1.0},
        crash_on={on.crash: 1.0},
    )


def _telling(row: Row) -> tuple[bool, bool, bool, int]:
    # A crash of both arms is one try's own: it speaks for the case only where no other try says anything.
    verdicts = row.verdict in DEPARTURES, row.verdict == EQUAL, row.verdict != "BOTH_CRASH"
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
