"""What records and mechanisms let a design see, before any data (docs/formats.md sections 15, 16)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from prereg.model.law import Crashed, Mass
from prereg.model.outcomes import key
from prereg.model.study import Study
from prereg.stats.budget import hypothesis_level
from prereg.stats.membership import reference_masses
from prereg.stats.power import design_of, detectable_gap, gap_power
from prereg.stats.records import record_events


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsRow:
    """What a configuration's records can show."""

    configuration: str
    kind: str
    reference: str
    events: int
    """Record events: 0 without a replay."""
    detectable: float | None
    """Smallest rate of mismatches seen with the planned probability if the off arm has none; None if no rate
    is, or without a replay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismRow:
    """What a registered mechanism would do."""

    configuration: str
    hypothesis: str
    cause: str
    priority: int
    level: float | None
    """Of each bound that it is tried by; None where nothing is drawn."""
    distance: float
    """Total variation between its law and P: mu_H(A_H) - P(A_H), crashes apart."""
    power: float | None
    """Probability that the bound on A_H rejects if the mechanism is there; None where nothing is drawn."""
    target: float
    """The planned probability."""


def records_table(study: Study) -> list[RecordsRow]:
    """A row for each configuration with records, in protocol order."""
    rows = []
    for c in study.protocol.drawn():
        if c.records is None:
            continue
        events = len(record_events(c))
        design = replace(design_of(study, c), threshold=0.0)
        rows.append(
            RecordsRow(
                configuration=c.id,
                kind=c.records.kind,
                reference=c.records.reference,
                events=events,
                detectable=detectable_gap(design, 0.0, study.protocol.power.target) if events else None,
            )
        )
    return rows


def mechanism_table(study: Study) -> list[MechanismRow]:
    """A row for each registered configuration, in file order."""
    drawn = {c.id for c in study.protocol.drawn()}
    rows = []
    for row in () if study.hypotheses is None else study.hypotheses.configurations:
        family = study.events.configurations[row.configuration]
        assert family.hypothesis is not None and family.reference is not None
        p, mu = _raised(family.reference, family.hypothesis.law)
        inside = row.configuration in drawn
        rows.append(
            MechanismRow(
                configuration=row.configuration,
                hypothesis=row.hypothesis,
                cause=row.cause,
                priority=row.priority,
                level=hypothesis_level(study, row.configuration) if inside else None,
                distance=mu - p,
                power=gap_power(design_of(study, study.protocol.configuration(row.configuration)), p, mu)
                if inside
                else None,
                target=study.protocol.power.target,
            )
        )
    return rows


def _raised(reference: Sequence[Mass], law: Sequence[Mass]) -> tuple[float, float]:
    """P(A_H) and mu_H(A_H)."""
    p = reference_masses(reference)
    inside = [
        (p.get(key(m.outcome), 0.0), m.p)
        for m in law
        if not isinstance(m.outcome, Crashed) and m.p > p.get(key(m.outcome), 0.0)
    ]
    return math.fsum(a for a, _ in inside), min(1.0, math.fsum(b for _, b in inside))
