"""Outcomes: which events contain them, which predicates they violate, what the reference gives them."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from audits.jsonc import canonical

Outcome = Mapping[str, Any]
"""``tokens`` and ``finish``, or ``crash``, or ``value``."""


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _after_pattern(tokens: list[int], pattern: list[int], context: list[int]) -> bool:
    text = context + tokens
    width = len(pattern)
    # `last` is the position of an occurrence's last token: inside `tokens`, before the last of them.
    return any(
        last - width + 1 >= 0 and text[last - width + 1 : last + 1] == pattern
        for last in range(len(context), len(text) - 1)
    )


def violates(rule: Mapping[str, Any], outcome: Outcome) -> bool:
    """Whether an outcome violates a predicate's rule; crashes and values violate nothing."""
    if "tokens" not in outcome:
        return False
    tokens: list[int] = outcome["tokens"]
    kind = rule["kind"]
    if kind == "max-tokens":
        return len(tokens) > int(rule["n"])
    if kind == "no-early-end":
        return any(token in rule["end"] for token in tokens[: rule["n"]])
    if kind == "nothing-after":
        return _after_pattern(tokens, rule["pattern"], rule["context"])
    if kind == "allowed-tokens":
        return any(token not in rule["tokens"] for token in tokens)
    if kind == "allowed-by-position":
        lists = rule["positions"]
        return any(token not in lists[i % len(lists)] for i, token in enumerate(tokens))
    if kind == "min-tokens":
        return len(tokens) < int(rule["n"])
    raise ValueError(f"predicate rule {kind!r}")


class Law:
    """One configuration's events, predicates and reference law."""

    def __init__(
        self,
        events: list[dict[str, Any]],
        reference: list[dict[str, Any]] | None,
        rules: Mapping[str, Mapping[str, Any]],
    ) -> None:
        """``rules`` are those of the predicates that bind the configuration, in its order."""
        self.events = events
        self.rules = rules
        self.has_reference = reference is not None
        self.reference = {canonical(item["outcome"]): float(item["p"]) for item in reference or ()}
        """P by the canonical bytes of the outcome; empty without a reference."""
        self._named = {canonical(event["outcome"]) for event in events if event["kind"] == "outcome"}
        self._parsed: dict[bytes, dict[str, Any]] = {}
        self._violated: dict[bytes, tuple[str, ...]] = {}

    def parsed(self, outcome: bytes) -> dict[str, Any]:
        """The outcome behind its canonical bytes."""
        if outcome not in self._parsed:
            # Its bytes were read strictly before, so there is nothing left to refuse.
            self._parsed[outcome] = json.loads(outcome)
        return self._parsed[outcome]

    def violated(self, outcome: bytes) -> tuple[str, ...]:
        """The predicates an outcome violates, in the configuration's order."""
        if outcome not in self._violated:
            value = self.parsed(outcome)
            self._violated[outcome] = tuple(n for n, rule in self.rules.items() if violates(rule, value))
        return self._violated[outcome]

    def probability_of(self, outcome: bytes) -> float:
        """The reference probability of one outcome; 0 if it is not there."""
        return self.reference.get(outcome, 0.0)

    def contains(self, event: Mapping[str, Any], outcome: bytes) -> bool:
        """Whether a listed event contains an outcome (canonical bytes)."""
        value, kind = self.parsed(outcome), event["kind"]
        if kind == "crash" or "crash" in value:
            return kind == "crash" and "crash" in value
        if kind == "outcome":
            return canonical(event["outcome"]) == outcome
        if kind == "other":
            return outcome not in self._named
        if kind == "violation":
            return bool(self.violated(outcome))
        if kind == "set":
            return any(canonical(item) == outcome for item in event["outcomes"])
        if kind in ("value", "at-least"):
            return "value" in value and _value_in(event, value["value"])
        if "tokens" not in value:
            return False
        tokens = value["tokens"]
        if kind == "prefix":
            return bool(tokens[: len(event["tokens"])] == event["tokens"])
        if kind == "length":
            return len(tokens) == int(event["equals"])
        if kind == "longer":
            return len(tokens) > int(event["than"])
        if kind == "finish":
            return bool(value["finish"] == event["equals"])
        raise ValueError(f"event kind {kind!r}")

    def members(self, event: Mapping[str, Any], outcomes: Mapping[bytes, Any]) -> list[bytes]:
        """The outcomes an event contains; by look-up where the event names them one by one."""
        if event["kind"] in ("outcome", "set"):
            named = [event["outcome"]] if event["kind"] == "outcome" else event["outcomes"]
            keys = {canonical(item) for item in named if "crash" not in item}
            return [key for key in keys if key in outcomes]
        return [outcome for outcome in outcomes if self.contains(event, outcome)]

    def probability(self, event: Mapping[str, Any]) -> float | None:
        """P of a listed event, correctly rounded and at most 1; None without a reference."""
        if not self.has_reference:
            return None
        return min(1.0, math.fsum(self.reference[outcome] for outcome in self.members(event, self.reference)))

    def count(self, event: Mapping[str, Any], outcomes: Counter[bytes]) -> int:
        """How many draws a listed event contains."""
        return sum(outcomes[outcome] for outcome in self.members(event, outcomes))

    def crashes(self, outcomes: Counter[bytes]) -> int:
        """How many draws are crashes."""
        return sum(count for outcome, count in outcomes.items() if "crash" in self.parsed(outcome))

    def violations(self, outcomes: Counter[bytes]) -> int:
        """How many draws violate a predicate of the configuration."""
        return sum(count for outcome, count in outcomes.items() if self.violated(outcome))

    def witnesses(self, off: Counter[bytes], on: Counter[bytes]) -> list[dict[str, Any]]:
        """The witnesses, most frequent first; none without a reference, which alone says P = 0."""
        if not self.has_reference:
            return []
        spared = {name for outcome in off for name in self.violated(outcome)}
        order = {name: i for i, name in enumerate(self.rules)}
        rows = [
            (-count, outcome, order[name], name)
            for outcome, count in on.items()
            if self.probability_of(outcome) == 0.0
            for name in self.violated(outcome)
            if name not in spared
        ]
        return [
            {"outcome": self.parsed(outcome), "predicate": name, "count": -negative}
            for negative, outcome, _, name in sorted(rows)
        ]


def _value_in(event: Mapping[str, Any], value: Any) -> bool:
    if event["kind"] == "at-least":
        return _is_number(value) and bool(value >= event["value"])
    equals = event["equals"]
    if _is_number(equals):
        return _is_number(value) and bool(value == equals)
    return type(value) is type(equals) and bool(value == equals)
