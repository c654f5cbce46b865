"""Outcomes, laws and the events over them (paper §3, §4.2; docs/formats.md sections 7 to 9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

JsonScalar = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """What a caller of a decoding engine sees."""

    tokens: tuple[int, ...]
    """Token ids after the prompt, exactly as returned."""
    finish: str | None
    """The finish reason, where the return map has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crashed:
    """The request raised; a crash is an outcome, never a lost draw."""

    crash: str
    """Name of the exception type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Valued:
    """What a study's own command printed for one draw."""

    value: JsonScalar


Outcome = Decoded | Crashed | Valued


@dataclass(frozen=True, slots=True, kw_only=True)
class Mass:
    """One outcome of a reference law and its probability."""

    outcome: Outcome
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeEvent:
    id: str
    outcome: Outcome
    kind: Literal["outcome"] = "outcome"


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherEvent:
    id: str
    kind: Literal["other"] = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixEvent:
    id: str
    tokens: tuple[int, ...]
    kind: Literal["prefix"] = "prefix"


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthEvent:
    id: str
    equals: int
    kind: Literal["length"] = "length"


@dataclass(frozen=True, slots=True, kw_only=True)
class LongerEvent:
    id: str
    than: int
    kind: Literal["longer"] = "longer"


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishEvent:
    id: str
    equals: str | None
    kind: Literal["finish"] = "finish"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashEvent:
    id: str
    kind: Literal["crash"] = "crash"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViolationEvent:
    id: str
    kind: Literal["violation"] = "violation"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetEvent:
    id: str
    outcomes: tuple[Outcome, ...]
    hypothesis: str | None
    """The mechanism hypothesis whose A_H this is (paper §4.3)."""
    kind: Literal["set"] = "set"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueEvent:
    id: str
    equals: JsonScalar
    kind: Literal["value"] = "value"


@dataclass(frozen=True, slots=True, kw_only=True)
class AtLeastEvent:
    id: str
    value: float
    kind: Literal["at-least"] = "at-least"


Event = (
    OutcomeEvent
    | OtherEvent
    | PrefixEvent
    | LengthEvent
    | LongerEvent
    | FinishEvent
    | CrashEvent
    | ViolationEvent
    | SetEvent
    | ValueEvent
    | AtLeastEvent
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The sealed events of one configuration; their complements belong to the family too."""

    reference: tuple[Mass, ...] | None
    """The law P of the reference arm, or None where no oracle exists."""
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """events.json."""

    schema: Literal["prereg/events/v1"] = "prereg/events/v1"
    study: str
    harness_sha256: str | None
    """Digest of the harness code whose oracle made the reference laws."""
    configurations: dict[str, Family]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxTokens:
    n: int
    kind: Literal["max-tokens"] = "max-tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoEarlyEnd:
    n: int
    end: tuple[int, ...]
    kind: Literal["no-early-end"] = "no-early-end"


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingAfter:
    pattern: tuple[int, ...]
    context: tuple[int, ...]
    kind: Literal["nothing-after"] = "nothing-after"


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedTokens:
    tokens: tuple[int, ...]
    kind: Literal["allowed-tokens"] = "allowed-tokens"


Rule = MaxTokens | NoEarlyEnd | NothingAfter | AllowedTokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """A documented contract rule (paper §4.2)."""

    id: str
    statement: str
    source: str
    """The documentation the rule comes from."""
    rule: Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicates:
    """predicates.json."""

    schema: Literal["prereg/predicates/v1"] = "prereg/predicates/v1"
    study: str
    predicates: tuple[Predicate, ...]
