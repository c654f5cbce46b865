"""Counts, probabilities and violations in both arms of a configuration (docs/formats.md sections 8 and 9)."""

from __future__ import annotations

from dataclasses import dataclass

from prereg.analyse.tally import Tally
from prereg.codec.canonical import dumps
from prereg.codec.convert import to_json
from prereg.model.law import Outcome
from prereg.model.study import Configuration, Study
from prereg.model.verdict import Witness
from prereg.stats.membership import Membership, key, membership_of, reference_masses

__all__ = ["Counted", "Membership", "canonical", "count"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What both arms of one configuration did; the tuples are in order of its listed events."""

    k_off: tuple[int, ...]
    k_on: tuple[int, ...]
    p: tuple[float, ...] | None
    """P of each listed event, or None without a reference law."""
    violations: int
    """Draws of the reference arm that violate some predicate."""
    witnesses: tuple[Witness, ...]


def canonical(outcome: Outcome) -> bytes:
    """The canonical JSON bytes of an outcome."""
    return dumps(to_json(outcome))


def count(study: Study, configuration: Configuration, off: Tally, on: Tally) -> Counted:
    """Count the listed events of one configuration in the tallies of its two arms."""
    member = membership_of(study, configuration)
    reference = study.events.configurations[configuration.id].reference
    broken_off = [(member.violated(outcome), n) for outcome, n in off.outcomes]
    return Counted(
        k_off=tuple(member.totals(off.outcomes)),
        k_on=tuple(member.totals(on.outcomes)),
        p=None if reference is None else tuple(min(1.0, p) for p in member.probabilities(reference)),
        violations=sum(n for broken, n in broken_off if broken),
        witnesses=_witnesses(
            study, configuration, member, on, {p for broken, _ in broken_off for p in broken}
        ),
    )


def _witnesses(
    study: Study, configuration: Configuration, member: Membership, on: Tally, broken_off: set[str]
) -> tuple[Witness, ...]:
    """Outcomes of the test arm with P = 0 that violate a predicate which no reference-arm outcome violates.

    Most frequent first, then by canonical bytes, then in the configuration's order of predicates. Only
    channel-S knows witnesses, and without a reference law no outcome has P = 0.
    """
    reference = study.events.configurations[configuration.id].reference
    if study.protocol.decision.rule != "channel-S" or reference is None:
        return ()
    mass = reference_masses(reference)
    rank = {name: i for i, name in enumerate(configuration.predicates)}
    found = [
        Witness(outcome=outcome, predicate=name, count=n)
        for outcome, n in on.outcomes
        for name in member.violated(outcome)
        if name not in broken_off and mass.get(key(outcome), 0.0) == 0.0
    ]
    found.sort(key=lambda w: (-w.count, canonical(w.outcome), rank[w.predicate]))
    return tuple(found)
