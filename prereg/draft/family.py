"""The event family of a decoding configuration, built from its enumerated law (paper §4.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from prereg.codec.canonical import dumps
from prereg.codec.convert import to_json
from prereg.errors import EngineFailed
from prereg.model.law import (
    CrashEvent,
    Decoded,
    Event,
    Events,
    Family,
    FinishEvent,
    LengthEvent,
    LongerEvent,
    Mass,
    OtherEvent,
    Outcome,
    OutcomeEvent,
    PrefixEvent,
    SetEvent,
    ViolationEvent,
)
from prereg.model.study import Protocol


def family(
    law: Sequence[Mass], *, horizon: int, hypotheses: Mapping[str, Iterable[Decoded]] | None = None
) -> Family:
    """Every event kind of paper §4.2 over the support of `law` and of the registered hypotheses.

    `hypotheses` maps a mechanism hypothesis to its A_H = {y : mu_H(y) > P(y)}.
    """
    support = [m.outcome for m in law]
    named = [o for o in support if isinstance(o, Decoded)]
    extra = {name: tuple(outcomes) for name, outcomes in (hypotheses or {}).items()}
    for outcomes in extra.values():
        named.extend(o for o in outcomes if o not in named)
    named.sort(key=lambda o: dumps(to_json(o)))
    events: list[Event] = [OutcomeEvent(id=f"o-{_label(o)}", outcome=o) for o in named]
    events.append(OtherEvent(id="other"))
    for size in (1, 2):
        prefixes = sorted({o.tokens[:size] for o in named if len(o.tokens) >= size})
        events.extend(PrefixEvent(id="prefix-" + "-".join(map(str, p)), tokens=p) for p in prefixes)
    events.extend(LengthEvent(id=f"length-{n}", equals=n) for n in range(horizon + 1))
    events.append(LongerEvent(id=f"longer-than-{horizon}", than=horizon))
    finishes = sorted({o.finish for o in named if o.finish is not None})
    events.extend(FinishEvent(id=f"finish-{f}", equals=f) for f in finishes)
    events.append(CrashEvent(id="crash"))
    events.append(ViolationEvent(id="violation"))
    events.extend(SetEvent(id=f"a-{name.lower()}", outcomes=v, hypothesis=name) for name, v in extra.items())
    return Family(reference=tuple(law), events=tuple(events))


def _label(outcome: Decoded) -> str:
    tokens = "-".join(map(str, outcome.tokens)) or "empty"
    return tokens if outcome.finish is None else f"{tokens}_{outcome.finish}"


NAMED = 100
"""Outcomes that get events of their own in a large law: as many of the heaviest, and of those that differ
most."""


def events_of(off: Mapping[Outcome, float], on: Mapping[Outcome, float], horizon: int) -> tuple[Event, ...]:
    """The events over two arms' laws, for what is judged outside a study: those over the off arm's outcomes.

    A large vocabulary has too many outcomes for an event each; then only those that matter have one.
    """
    named = [outcome for outcome in {**off, **on} if isinstance(outcome, Decoded)]
    heaviest = sorted(named, key=lambda o: -max(off.get(o, 0.0), on.get(o, 0.0)))[:NAMED]
    widest = sorted(named, key=lambda o: -abs(off.get(o, 0.0) - on.get(o, 0.0)))[:NAMED]
    if len(named) <= 10 * NAMED:
        heaviest = [outcome for outcome in named if outcome in off]
        widest = []
    law = [Mass(outcome=o, p=min(off.get(o, 0.0), 1.0)) for o in dict.fromkeys([*heaviest, *widest])]
    return family(law, horizon=horizon).events if law else ()


def build_events(protocol: Protocol, laws: Mapping[str, Sequence[Mass]], harness_sha256: str) -> Events:
    """events.json of a conformance study from the oracle's laws.

    Raises EngineFailed for a law that does not sum to 1.
    """
    out: dict[str, Family] = {}
    for configuration in protocol.configurations:
        law = laws[configuration.id]
        total = sum(m.p for m in law)
        if abs(total - 1) > 1e-9:
            raise EngineFailed(f"the law of {configuration.id} sums to {total!r}", where="events.json")
        if configuration.horizon is None:
            raise EngineFailed(f"{configuration.id} has no horizon", where="protocol.json")
        out[configuration.id] = family(law, horizon=configuration.horizon)
    return Events(study=protocol.study, harness_sha256=harness_sha256, configurations=out)


def events_json(events: Events) -> dict[str, Any]:
    """The JSON of an Events value."""
    value: dict[str, Any] = to_json(events)
    return value
