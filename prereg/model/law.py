"""Outcomes, laws and the events over them (paper §3, §4.2; docs/formats.md sections 7 to 9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

JsonScalar = str | int | float | bool
RecordValue = float | str
"""A number, or one of "-inf", "inf" and "nan"."""


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
class RecordEntry:
    """What an engine told beside one returned token: a value for each of some tokens of the vocabulary."""

    tokens: tuple[int, ...]
    """Ascending, all different."""
    values: tuple[RecordValue, ...]
    """One for each token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceEntry:
    """The documented record after a prefix, by teacher-forced replay (paper §4.2)."""

    prefix: tuple[int, ...]
    entry: RecordEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismLaw:
    """The law mu_H of the hypothesis that is registered for a configuration (paper §4.3)."""

    id: str
    switch: float
    """How far its simulator is from P once every read that speculation moves has its logical value."""
    law: tuple[Mass, ...]


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
    hypothesis: MechanismLaw | None = None
    """There exactly where a mechanism is registered."""
    records: tuple[ReferenceEntry, ...] | None = None
    """The documented record after each prefix; there exactly where records have a reference."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedByPosition:
    positions: tuple[tuple[int, ...], ...]
    """Token number i, from 0, must be in list number i modulo their number."""
    kind: Literal["allowed-by-position"] = "allowed-by-position"


@dataclass(frozen=True, slots=True, kw_only=True)
class MinTokens:
    n: int
    kind: Literal["min-tokens"] = "min-tokens"


Rule = MaxTokens | NoEarlyEnd | NothingAfter | AllowedTokens | AllowedByPosition | MinTokens


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
