"""The event family of a decoding configuration, built from its enumerated law (paper §4.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
    MechanismLaw,
    OtherEvent,
    Outcome,
    OutcomeEvent,
    PrefixEvent,
    ReferenceEntry,
    SetEvent,
    ViolationEvent,
)
from prereg.model.study import Protocol


def family(
    law: Sequence[Mass],
    *,
    horizon: int,
    mechanism: MechanismLaw | None = None,
    records: tuple[ReferenceEntry, ...] | None = None,
) -> Family:
    """Every event kind of paper §4.2 over the support of `law` and of the registered mechanism's law.

    The last event is A_H, unless it is empty. `records` is the replay of records, which has no events of its
    own here.
    """
    named = dict.fromkeys(_support(law))
    if mechanism is not None:
        named |= dict.fromkeys(_support(mechanism.law))
    ordered = sorted(named, key=_canonical)
    events: list[Event] = [OutcomeEvent(id=f"o-{_label(o)}", outcome=o) for o in ordered]
    events.append(OtherEvent(id="other"))
    for size in (1, 2):
        prefixes = sorted({o.tokens[:size] for o in ordered if len(o.tokens) >= size})
        events.extend(PrefixEvent(id="prefix-" + "-".join(map(str, p)), tokens=p) for p in prefixes)
    events.extend(LengthEvent(id=f"length-{n}", equals=n) for n in range(horizon + 1))
    events.append(LongerEvent(id=f"longer-than-{horizon}", than=horizon))
    finishes = sorted({o.finish for o in ordered if o.finish is not None})
    events.extend(FinishEvent(id=f"finish-{f}", equals=f) for f in finishes)
    events.append(CrashEvent(id="crash"))
    events.append(ViolationEvent(id="violation"))
    if mechanism is not None and (above := _above(mechanism.law, law)):
        event_id = f"a-{mechanism.id.lower()}"
        events.append(SetEvent(id=event_id, outcomes=above, hypothesis=mechanism.id))
    return Family(reference=tuple(law), events=tuple(events), hypothesis=mechanism, records=records)


def _support(law: Sequence[Mass]) -> list[Decoded]:
    """The outcomes with p > 0 that are no crash."""
    return [m.outcome for m in law if isinstance(m.outcome, Decoded) and m.p > 0]


def _above(mechanism: Sequence[Mass], law: Sequence[Mass]) -> tuple[Decoded, ...]:
    """A_H = {y : mu_H(y) > P(y)}, crashes left out."""
    reference = {m.outcome: m.p for m in law}
    above = [
        m.outcome for m in mechanism if isinstance(m.outcome, Decoded) and m.p > reference.get(m.outcome, 0.0)
    ]
    return tuple(sorted(above, key=_canonical))


def _canonical(outcome: Decoded) -> bytes:
    return dumps(to_json(outcome))


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


def build_events(
    protocol: Protocol,
    laws: Mapping[str, Sequence[Mass]],
    harness_sha256: str,
    *,
    mechanisms: Mapping[str, MechanismLaw] | None = None,
    replays: Mapping[str, tuple[ReferenceEntry, ...]] | None = None,
) -> Events:
    """events.json of a conformance study from the oracle's laws, its mechanisms' and its records' replays.

    Raises EngineFailed for a law that does not sum to 1.
    """
    out: dict[str, Family] = {}
    for configuration in protocol.configurations:
        name = configuration.id
        law, mechanism = laws[name], (mechanisms or {}).get(name)
        for what, masses in (("law", law), ("law under its hypothesis", mechanism.law if mechanism else law)):
            total = math.fsum(m.p for m in masses)
            if abs(total - 1) > 1e-9:
                raise EngineFailed(f"the {what} of {name} sums to {total!r}", where="events.json")
        if configuration.horizon is None:
            raise EngineFailed(f"{name} has no horizon", where="protocol.json")
        out[name] = family(
            law, horizon=configuration.horizon, mechanism=mechanism, records=(replays or {}).get(name)
        )
    return Events(study=protocol.study, harness_sha256=harness_sha256, configurations=out)


def events_json(events: Events) -> dict[str, Any]:
    """The JSON of an Events value."""
    value: dict[str, Any] = to_json(events)
    return value
