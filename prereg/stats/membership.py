"""Which outcomes an event contains, and which rules an outcome breaks (docs/formats.md sections 8 and 9).

`contains` and `breaks` follow the page line by line. `Membership` answers the same question for a whole
family at once by looking each outcome up, and is what the analysis uses; the tests hold the two equal.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import assert_never

from prereg.model import law
from prereg.model.law import Crashed, Decoded, Event, JsonScalar, Outcome, Predicate, Rule, Valued
from prereg.model.outcomes import Key as Key
from prereg.model.outcomes import key as key
from prereg.model.outcomes import scalar
from prereg.model.study import Configuration, Study


def breaks(outcome: Outcome, rule: Rule) -> bool:
    """Whether an outcome violates a rule; crashes and values violate nothing."""
    if not isinstance(outcome, Decoded):
        return False
    tokens = outcome.tokens
    match rule:
        case law.MaxTokens():
            return len(tokens) > rule.n
        case law.NoEarlyEnd():
            return any(t in rule.end for t in tokens[: rule.n])
        case law.NothingAfter():
            text, size = rule.context + tokens, len(rule.pattern)
            first = max(size, len(rule.context) + 1)
            return any(text[end - size : end] == rule.pattern for end in range(first, len(text)))
        case law.AllowedTokens():
            return any(t not in rule.tokens for t in tokens)
        case law.AllowedByPosition():
            lists = rule.positions
            return any(t not in lists[i % len(lists)] for i, t in enumerate(tokens))
        case law.MinTokens():
            return len(tokens) < rule.n
    assert_never(rule)


def predicates_of(study: Study, configuration: Configuration) -> tuple[Predicate, ...]:
    """The predicates that bind a configuration, in its own order."""
    known = {p.id: p for p in study.predicates.predicates}
    return tuple(known[name] for name in configuration.predicates)


def contains(
    event: Event, outcome: Outcome, events: Sequence[Event], predicates: Sequence[Predicate]
) -> bool:
    """Whether a listed event contains an outcome: the definition, slow.

    `events` are all listed events of the configuration (`other` depends on them) and `predicates` those that
    bind it.
    """
    if isinstance(outcome, Crashed):
        return isinstance(event, law.CrashEvent)
    match event:
        case law.OutcomeEvent():
            return key(event.outcome) == key(outcome)
        case law.OtherEvent():
            return not any(isinstance(e, law.OutcomeEvent) and key(e.outcome) == key(outcome) for e in events)
        case law.CrashEvent():
            return False
        case law.ViolationEvent():
            return any(breaks(outcome, p.rule) for p in predicates)
        case law.SetEvent():
            return key(outcome) in [key(o) for o in event.outcomes]
        case law.PrefixEvent():
            return isinstance(outcome, Decoded) and outcome.tokens[: len(event.tokens)] == event.tokens
        case law.LengthEvent():
            return isinstance(outcome, Decoded) and len(outcome.tokens) == event.equals
        case law.LongerEvent():
            return isinstance(outcome, Decoded) and len(outcome.tokens) > event.than
        case law.FinishEvent():
            return isinstance(outcome, Decoded) and outcome.finish == event.equals
        case law.ValueEvent():
            return isinstance(outcome, Valued) and scalar(outcome.value) == scalar(event.equals)
        case law.AtLeastEvent():
            return isinstance(outcome, Valued) and _at_least(outcome.value, event.value)
    assert_never(event)


def _at_least(value: JsonScalar, floor: float) -> bool:
    return not isinstance(value, str | bool) and value >= floor


class Membership:
    """The listed events of one configuration, indexed so that an outcome finds its events at once."""

    def __init__(self, events: Sequence[Event], predicates: Sequence[Predicate] = ()) -> None:
        self.events = tuple(events)
        self.predicates = tuple(predicates)
        self._equal: dict[Key, list[int]] = {}
        self._listed: set[Key] = set()
        self._prefix: dict[tuple[int, ...], list[int]] = {}
        self._length: dict[int, list[int]] = {}
        self._finish: dict[str | None, list[int]] = {}
        self._other: list[int] = []
        self._crash: list[int] = []
        self._violation: list[int] = []
        longer: list[tuple[float, int]] = []
        at_least: list[tuple[float, int]] = []
        for i, event in enumerate(self.events):
            match event:
                case law.OutcomeEvent():
                    self._listed.add(key(event.outcome))
                    self._equal.setdefault(key(event.outcome), []).append(i)
                case law.SetEvent():
                    for k in {key(o) for o in event.outcomes}:
                        self._equal.setdefault(k, []).append(i)
                case law.ValueEvent():
                    self._equal.setdefault(key(Valued(value=event.equals)), []).append(i)
                case law.PrefixEvent():
                    self._prefix.setdefault(event.tokens, []).append(i)
                case law.LengthEvent():
                    self._length.setdefault(event.equals, []).append(i)
                case law.FinishEvent():
                    self._finish.setdefault(event.equals, []).append(i)
                case law.LongerEvent():
                    longer.append((event.than, i))
                case law.AtLeastEvent():
                    at_least.append((event.value, i))
                case law.OtherEvent():
                    self._other.append(i)
                case law.CrashEvent():
                    self._crash.append(i)
                case law.ViolationEvent():
                    self._violation.append(i)
                case _:
                    assert_never(event)
        self._prefix_sizes = sorted({len(p) for p in self._prefix})
        self._longer = _Thresholds(longer, bisect_left)
        self._at_least = _Thresholds(at_least, bisect_right)

    def violated(self, outcome: Outcome) -> tuple[str, ...]:
        """Ids of the predicates that an outcome violates, in the configuration's order."""
        return tuple(p.id for p in self.predicates if breaks(outcome, p.rule))

    def of(self, outcome: Outcome) -> list[int]:
        """Positions of the listed events that contain an outcome; each once, in no order."""
        if isinstance(outcome, Crashed):
            return list(self._crash)
        k = key(outcome)
        found = list(self._equal.get(k, ()))
        if k not in self._listed:
            found += self._other
        if isinstance(outcome, Valued):
            if not isinstance(outcome.value, str | bool):
                found += self._at_least.below(outcome.value)
            return found
        tokens = outcome.tokens
        for size in self._prefix_sizes:
            if size > len(tokens):
                break
            found += self._prefix.get(tokens[:size], ())
        found += self._length.get(len(tokens), ())
        found += self._finish.get(outcome.finish, ())
        found += self._longer.below(len(tokens))
        if self._violation and any(breaks(outcome, p.rule) for p in self.predicates):
            found += self._violation
        return found

    def totals(self, weighted: Iterable[tuple[Outcome, int]]) -> list[int]:
        """For each listed event, the sum of the weights of the outcomes in it."""
        sums = [0] * len(self.events)
        for outcome, weight in weighted:
            for i in self.of(outcome):
                sums[i] += weight
        return sums

    def probabilities(self, reference: Iterable[law.Mass]) -> list[float]:
        """P of each listed event: the correctly rounded sum of its outcomes' masses."""
        parts: list[list[float]] = [[] for _ in self.events]
        for mass in reference:
            for i in self.of(mass.outcome):
                parts[i].append(mass.p)
        return [math.fsum(p) for p in parts]


class _Thresholds:
    """Events `x > threshold` (cut with bisect_left) or `x >= threshold` (cut with bisect_right)."""

    def __init__(self, pairs: list[tuple[float, int]], cut: Callable[[list[float], float], int]) -> None:
        ordered = sorted(pairs)
        self._at = [t for t, _ in ordered]
        self._events = [i for _, i in ordered]
        self._cut = cut

    def below(self, x: float) -> list[int]:
        """Positions of the events that hold at `x`."""
        return self._events[: self._cut(self._at, x)]


def membership_of(study: Study, configuration: Configuration) -> Membership:
    """The membership index of one configuration of a study."""
    family = study.events.configurations[configuration.id]
    return Membership(family.events, predicates_of(study, configuration))


def reference_masses(reference: Sequence[law.Mass]) -> Mapping[Key, float]:
    """P of each single outcome of a reference law."""
    masses: dict[Key, float] = {}
    for mass in reference:
        masses[key(mass.outcome)] = masses.get(key(mass.outcome), 0.0) + mass.p
    return masses
