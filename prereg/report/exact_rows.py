"""What the page says of the exact stage, configuration by configuration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from prereg.model.exact import ExactDecision, ExactWitness, PremiseTest
from prereg.model.law import CrashEvent, Decoded, Event, OtherEvent, Outcome, OutcomeEvent
from prereg.model.study import Configuration, Study
from prereg.model.verdict import Decisions
from prereg.report import beside_rows, tried, words
from prereg.stats.channels import contradiction

WITNESSES = 12
"""Witnesses that the page lists for one configuration; the rest are counted."""
HEAVIEST = 10
"""Outcomes that the plot of the two laws shows."""


def shortest(witnesses: Iterable[ExactWitness]) -> list[ExactWitness]:
    """Those with the fewest tokens first, of equal length the heaviest: the easiest to look into."""
    return sorted(witnesses, key=lambda w: (_length(w.outcome), -w.p))


def _length(outcome: Outcome) -> int:
    return len(outcome.tokens) if isinstance(outcome, Decoded) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """Explored mass of an outcome, or of a set of outcomes, in both arms."""

    label: str
    p: float | None
    off: float
    on: float


def heaviest(decision: ExactDecision, events: Sequence[Event], vocabulary: Sequence[str]) -> list[Bar]:
    """The single outcomes with the most mass in either arm, then what is left: other outcomes and crashes.

    A family that lists no single outcome shows its heaviest events instead.
    """
    kinds = {e.id: e for e in events}

    def bars(*of: type[Any]) -> list[Bar]:
        rows = [row for row in decision.masses if isinstance(kinds[row.event], of)]
        rows.sort(key=lambda row: -max(row.off, row.on))
        return [
            Bar(label=_label(kinds[row.event], vocabulary), p=row.p, off=row.off, on=row.on) for row in rows
        ]

    single = bars(OutcomeEvent)[:HEAVIEST]
    if not single:
        return bars(object)[:HEAVIEST]
    return single + [bar for bar in bars(OtherEvent, CrashEvent) if bar.off or bar.on]


def _label(event: Event, vocabulary: Sequence[str]) -> str:
    if isinstance(event, OutcomeEvent):
        return words.outcome(event.outcome, vocabulary)
    return words.event(event)


def rows(study: Study, decisions: Decisions) -> list[dict[str, Any]]:
    """What the page shows of each configuration of the exact stage, in order."""
    if decisions.exact is None:
        return []
    drawn = {d.id: d for d in decisions.configurations}
    premise = decisions.exact.premise
    tests = {} if premise is None else {test.id: test for test in premise.configurations}
    found = []
    for decision in decisions.exact.configurations:
        other = drawn.get(decision.id)
        against = None if other is None else contradiction(other, decision)
        found.append(
            _row(study, decision)
            | _premise(study, decision.id, tests.get(decision.id))
            | beside_rows.mechanism(study, decision.id, decision.hypothesis)
            | {
                "drawn": other,
                "drawn_word": None if other is None else tried.word_of(other),
                "contradiction": None if against is None else words.contradiction(against),
            }
        )
    return found


def _row(study: Study, decision: ExactDecision) -> dict[str, Any]:
    configuration = study.protocol.configuration(decision.id)
    family = {e.id: e for e in study.events.configurations[decision.id].events}
    statements = {p.id: p for p in study.predicates.predicates}
    known = vocabulary_of(study, configuration)
    return {
        "decision": decision,
        "configuration": configuration,
        "word": tried.word_of(decision),
        "tried": tried.beside(decision, arms_of(study)),
        "differing": tried.differing(decision),
        "reasons": "; ".join(words.EXACT_REASONS[r] for r in decision.reasons),
        "gap_event": None
        if decision.D_event is None
        else words.event(family[decision.D_event], bool(decision.D_complement)),
        "witnesses": [
            (words.outcome(w.outcome, known), statements[w.predicate], w.p)
            for w in shortest(decision.witnesses)[:WITNESSES]
        ],
        "more_witnesses": max(0, len(decision.witnesses) - WITNESSES),
        "events": [(row, words.event(family[row.event])) for row in decision.masses],
    }


def _premise(study: Study, name: str, test: PremiseTest | None) -> dict[str, Any]:
    if test is None:
        return {"premise": None}
    family = {e.id: e for e in study.events.configurations[name].events}
    return {
        "premise": test,
        "premise_word": words.PREMISE[test.status],
        "premise_reasons": "; ".join(words.PREMISE_REASONS[r] for r in test.reasons),
        "premise_arms": [
            (arm, found, words.event(family[found.event]))
            for arm, found in (("off", test.off), ("on", test.on))
            if found is not None
        ],
    }


def vocabulary_of(study: Study, configuration: Configuration) -> Sequence[str]:
    """The words of a configuration's model; none without a model."""
    model = None if configuration.model is None else study.protocol.models.get(configuration.model)
    return () if model is None else model.vocab


def tallies(decisions: Decisions | None) -> list[tuple[str, int, words.Word]]:
    """How often each exact verdict occurs, in the order in which the words are defined."""
    if decisions is None or decisions.exact is None:
        return []
    return tried.tallies(decisions.exact.configurations, words.EXACT)


def arms_of(study: Study) -> tuple[str, str]:
    """The ids of the reference and of the test arm."""
    return study.protocol.reference_arm.id, study.protocol.test_arm.id
