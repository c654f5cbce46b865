"""Decisions as tables for people: what the draws say, what the trees say, and both beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prereg.cli.output import number, say, table, witness_draws
from prereg.report import words
from prereg.report.beside_rows import alone, has_beside
from prereg.report.exact_rows import shortest
from prereg.report.tried import LEFT_OPEN, beside
from prereg.stats.channels import contradiction

if TYPE_CHECKING:
    from prereg.model.exact import ExactDecision
    from prereg.model.study import Protocol
    from prereg.model.verdict import Decision, Decisions

WITNESSES = 3
"""Shortest witnesses that are shown of a configuration."""


OFF_ON = ("off", "on")
"""What the arms of a decoding engine are called here, whatever their ids."""


def arms_of(protocol: Protocol) -> tuple[str, str]:
    """What the arms are called: those of any two commands by their own ids."""
    if protocol.decision.rule != "event-gap":
        return OFF_ON
    return protocol.reference_arm.id, protocol.test_arm.id


def show_decisions(decisions: Decisions, arms: tuple[str, str] = OFF_ON) -> None:
    """Every table of an analysis, and what must not be overlooked; `arms` are the reference and the test."""
    off, on = arms
    if decisions.configurations:
        _show_drawn(decisions.configurations, arms)
    if decisions.exact is not None:
        _show_walked(decisions)
    _show_tried(decisions, arms)
    _show_records([d for d in decisions.configurations if has_beside(d)])
    _show_mechanisms(decisions)
    _show_contradictions(decisions)
    for d in decisions.configurations:
        for arm, crashed, draws in ((off, d.crashes.off, d.draws.off), (on, d.crashes.on, d.draws.on)):
            if crashed and draws and 2 * crashed > draws:
                say(f"Most draws of {d.id} ({arm}) crashed: its verdict says nothing about anything else.")
    if decisions.predictions:
        table("Predictions", ("prediction", "status"), [(p.id, p.status) for p in decisions.predictions])


def verdicts(decisions: Decisions) -> dict[str, dict[str, str]]:
    """The verdicts of both channels by configuration, the premise's status, and what stands beside them."""
    found: dict[str, dict[str, str]] = {}
    for d in decisions.configurations:
        found.setdefault(d.id, {})["draws"] = d.verdict
        if d.records is not None:
            found[d.id]["records"] = d.records.verdict
        if d.hypothesis is not None:
            found[d.id]["hypothesis"] = d.hypothesis.status
    if decisions.exact is not None:
        for e in decisions.exact.configurations:
            found.setdefault(e.id, {})["exact"] = e.verdict
            if e.hypothesis is not None:
                found[e.id]["exact-hypothesis"] = e.hypothesis.status
        if decisions.exact.premise is not None:
            for test in decisions.exact.premise.configurations:
                found[test.id]["premise"] = test.status
    return found


def _show_drawn(decided: Sequence[Decision], arms: tuple[str, str]) -> None:
    decoding = any(d.rule == "channel-S" for d in decided)
    columns = ("witnesses", "proposed") if decoding else ()

    def cells(d: Decision) -> tuple[str, ...]:
        draws = number(witness_draws((w.outcome, w.count) for w in d.witnesses))
        return (draws, number(d.proposals)) if decoding else ()

    table(
        "Decisions",
        (
            "configuration",
            "verdict",
            "because",
            *columns,
            "gap D",
            "on event",
            f"crashed {arms[0]} / {arms[1]}",
        ),
        [
            (
                d.id,
                d.verdict,
                ", ".join(d.reasons),
                *cells(d),
                number(d.D),
                _event(d.D_event, d.D_complement),
                f"{number(d.crashes.off)} / {number(d.crashes.on)}",
            )
            for d in decided
        ],
    )
    say(
        f"because: what the verdict rests on. gap D: how much likelier its event is in {arms[1]} than in "
        f"{arms[0]}, at the least (a lower bound, the largest of all events; below 0 it shows nothing)."
    )


def _event(name: str | None, complement: bool | None) -> str | None:
    return None if name is None else ("not " if complement else "") + name


def _show_walked(decisions: Decisions) -> None:
    exact = decisions.exact
    assert exact is not None
    known = verdicts(decisions)
    both = bool(decisions.configurations)
    tested = exact.premise is not None
    beside = (*(("by draws",) if both else ()), *(("premise",) if tested else ()))

    def cells(e: ExactDecision) -> tuple[str, ...]:
        other = known[e.id]
        return (
            *((other.get("draws", "-"),) if both else ()),
            *((other.get("premise", "-"),) if tested else ()),
        )

    table(
        "Decisions by the exact channel",
        ("configuration", "verdict", "total variation", *beside),
        [(e.id, e.verdict, interval(e), *cells(e)) for e in exact.configurations],
    )
    table(
        "What they rest on",
        ("configuration", "because", "gap D", "on event", "witness mass", "crash mass off / on"),
        [
            (
                e.id,
                ", ".join(e.reasons),
                number(e.D),
                _event(e.D_event, e.D_complement),
                number(e.witness_mass),
                f"{number(e.crash_mass.off)} / {number(e.crash_mass.on)}",
            )
            for e in exact.configurations
        ],
    )
    table(
        "The walks, off / on",
        ("configuration", "engine runs", "outcomes", "unexplored", "proposed", "accepted", "off from P"),
        [
            (
                e.id,
                f"{number(e.runs.off)} / {number(e.runs.on)}",
                f"{number(e.outcomes.off)} / {number(e.outcomes.on)}",
                f"{number(e.unexplored.off)} / {number(e.unexplored.on)}",
                number(e.proposals),
                number(e.accepted),
                number(None if e.oracle is None else e.oracle.largest),
            )
            for e in exact.configurations
        ],
    )
    if any(e.verdict == "EQUAL_WITHIN_TOLERANCE" for e in exact.configurations):
        say(f"EQUAL_WITHIN_TOLERANCE: total variation at most {exact.tolerance:g}, {words.SCOPE}.")
    for e in exact.configurations:
        for w in shortest(e.witnesses)[:WITNESSES]:
            say(f"  {e.id}: a witness of mass {number(w.p)} breaks {w.predicate}: {words.outcome(w.outcome)}")
    if exact.premise is not None:
        for test in exact.premise.configurations:
            if test.status == "FAILS":
                say(
                    f"The premise of {test.id} FAILS ({', '.join(test.reasons)}). "
                    + words.PREMISE["FAILS"].meaning
                )


def interval(e: ExactDecision) -> str:
    """The total variation of the two arms: one number, or from and to."""
    return _between(e.tv_lower, e.tv_upper)


def _between(lower: float | None, upper: float | None) -> str:
    if lower is None or upper is None:
        return "-"
    if upper - lower <= 1e-9:
        return number(upper)
    return f"{number(lower)} to {number(upper)}"


def _show_records(decided: Sequence[Decision]) -> None:
    """How often speculation was at work, and what the engine returned beside the tokens."""
    if not decided:
        return
    rows = []
    for d in decided:
        assert d.exposed is not None
        said: tuple[str | None, ...] = ("-", "-", "-", "-")
        if d.records is not None:
            said = (d.records.verdict, ", ".join(d.records.reasons), number(d.records.D), d.records.D_event)
        rows.append((d.id, f"{number(d.exposed.draws)} of {number(d.draws.on)}", *said))
    columns = ("configuration", "exposed draws", "records", "because", "gap D", "on event")
    table("Records, beside the verdicts", columns, rows)
    for d in decided:
        if alone(d):
            say(f"{d.id}: its records FAIL, its outcomes do not: this is a departure of records alone.")


def _show_mechanisms(decisions: Decisions) -> None:
    """Registered mechanisms beside the draws and beside the trees."""
    drawn = [(d.id, d.hypothesis) for d in decisions.configurations if d.hypothesis is not None]
    if drawn:
        table(
            "Registered mechanisms, by draws",
            ("configuration", "mechanism", "status", "excess", "on event", "impossible", "law P rejected"),
            [
                (name, h.id, h.status, number(h.excess), h.event, number(h.impossible), _yes(h.null_rejected))
                for name, h in drawn
            ],
        )
    if any(h.status == "COMPATIBLE" for _, h in drawn):
        say(f"COMPATIBLE: {words.COMPATIBLE}.")
    walked = () if decisions.exact is None else decisions.exact.configurations
    trees = [(e.id, e.hypothesis) for e in walked if e.hypothesis is not None]
    if trees:
        table(
            "Registered mechanisms, exactly: total variation of the on arm's law",
            ("configuration", "mechanism", "status", "to the mechanism's law", "to P"),
            [
                (
                    name,
                    h.id,
                    h.status,
                    _between(h.tv_lower, h.tv_upper),
                    _between(h.null_tv_lower, h.null_tv_upper),
                )
                for name, h in trees
            ],
        )


def _show_tried(decisions: Decisions, arms: tuple[str, str]) -> None:
    """Attempts and second results where there were any, and what a ceiling left open."""
    walked = () if decisions.exact is None else decisions.exact.configurations
    rows: list[tuple[str, ...]] = []
    for channel, decided in (("draws", decisions.configurations), ("exact", walked)):
        for d in decided:
            if d.attempts is None or d.duplicates is None:
                continue
            for arm, attempt, copies in (
                (arms[0], d.attempts.off, d.duplicates.off),
                (arms[1], d.attempts.on, d.duplicates.on),
            ):
                if attempt > 1 or copies.copies:
                    rows.append(
                        (d.id, channel, arm, number(attempt), number(copies.copies), number(copies.differing))
                    )
    if rows:
        columns = ("configuration", "channel", "arm", "attempt", "second results", "came out differently")
        table("Tried again, and drawn again", columns, rows)
    both: list[Decision | ExactDecision] = [*decisions.configurations, *walked]
    for one in both:
        for line in beside(one, arms):
            say(f"  {one.id}, {line}.")
        if "ceiling" in one.reasons:
            say(f"{one.id} is left open: {LEFT_OPEN.meaning}")


def _yes(value: bool | None) -> str:
    return "-" if value is None else ("yes" if value else "no")


def _show_contradictions(decisions: Decisions) -> None:
    if decisions.exact is None:
        return
    walked = {e.id: e for e in decisions.exact.configurations}
    for d in decisions.configurations:
        if d.id in walked and (found := contradiction(d, walked[d.id])) is not None:
            say(f"CONTRADICTION on {d.id}: {words.contradiction(found)}")
