"""What registered mechanism hypotheses ask of the study files (docs/formats.md section 15)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from prereg.errors import UsageError
from prereg.model.law import Crashed, Family, OutcomeEvent, SetEvent
from prereg.model.outcomes import Key, key
from prereg.model.study import Study

SWITCH = 1e-12
"""How far a simulator with every moved read at its logical value may be from P."""
LAW_SUM = 1e-9


def mechanism_problems(study: Study) -> Iterator[UsageError]:
    """Registrations that lead nowhere, and laws and events that are not those of what is registered."""
    if not study.protocol.since(2):
        return
    yield from _file_problems(study)
    yield from _plan_problems(study)
    for name, family in study.events.configurations.items():
        row = study.registered(name)
        where = f"events.json#/configurations/{name}"
        yield from _law_problems(family, None if row is None else row.hypothesis, where)


def _file_problems(study: Study) -> Iterator[UsageError]:
    given, p, f = study.hypotheses, study.protocol, "hypotheses.json#"
    if given is None:
        return
    if given.study != p.study:
        yield UsageError(f"belongs to study {given.study!r}, not {p.study!r}", where=f"{f}/study")
    known: set[str] = set()
    for i, hypothesis in enumerate(given.hypotheses):
        if hypothesis.id in known:
            yield UsageError(f"the id {hypothesis.id!r} stands twice", where=f"{f}/hypotheses/{i}/id")
        known.add(hypothesis.id)
    configurations = {c.id: c for c in p.configurations}
    listed: set[str] = set()
    for i, row in enumerate(given.configurations):
        at = f"{f}/configurations/{i}"
        configuration = configurations.get(row.configuration)
        if row.configuration in listed:
            yield UsageError(f"{row.configuration!r} registers two hypotheses", where=f"{at}/configuration")
        listed.add(row.configuration)
        if row.hypothesis not in known:
            yield UsageError(f"there is no hypothesis {row.hypothesis!r}", where=f"{at}/hypothesis")
        if configuration is None:
            what = f"there is no configuration {row.configuration!r}"
            yield UsageError(what, where=f"{at}/configuration")
            continue
        if configuration.drafter is None:
            what = f"{row.configuration!r} has no drafter: its mechanism would do nothing"
            yield UsageError(what, where=f"{at}/configuration")
        family = study.events.configurations.get(row.configuration)
        if family is not None and family.reference is None:
            what = f"{row.configuration!r} has no reference law to compare the mechanism with"
            yield UsageError(what, where=f"{at}/configuration")


def _plan_problems(study: Study) -> Iterator[UsageError]:
    p, where = study.protocol, "protocol.json#/hypotheses"
    rows = () if study.hypotheses is None else study.hypotheses.configurations
    if rows and p.decision.rule == "event-gap":
        yield UsageError("event-gap registers no mechanism", where="hypotheses.json#/configurations")
    if rows and p.hypotheses is None:
        yield UsageError("registered hypotheses need their alpha and allowance", where=where)
    if p.hypotheses is None:
        return
    if not rows:
        yield UsageError("hypotheses.json registers nothing", where=where)
    elif not {row.configuration for row in rows} & {c.id for c in p.drawn()}:
        if p.hypotheses.alpha is not None:
            what = "no registered configuration is in a stage of draws: there is nothing to spend it on"
            yield UsageError(what, where=f"{where}/alpha")
    elif p.hypotheses.alpha is None:
        yield UsageError("registered configurations are drawn: they need an alpha", where=f"{where}/alpha")


def _law_problems(family: Family, registered: str | None, where: str) -> Iterator[UsageError]:
    """What is wrong with the law mu_H of one configuration and with its events A_H."""
    given = family.hypothesis
    if (given is None) != (registered is None):
        what = f"the law of {registered} is missing" if given is None else "no mechanism is registered for it"
        remedy = "prereg events DIR" if given is None else None
        yield UsageError(what, where=f"{where}/hypothesis", next_step=remedy)
        return
    named = [(i, e) for i, e in enumerate(family.events) if isinstance(e, SetEvent) and e.hypothesis]
    for i, event in named:
        if event.hypothesis != registered:
            what = f"names {event.hypothesis}, and registered is {registered or 'none'}"
            yield UsageError(what, where=f"{where}/events/{i}/hypothesis")
    if given is None:
        return
    if given.id != registered:
        yield UsageError(f"is {given.id}, and registered is {registered}", where=f"{where}/hypothesis/id")
    if given.switch > SWITCH:
        what = f"with every moved read at its logical value the simulator is {given.switch:g} off P"
        yield UsageError(what, where=f"{where}/hypothesis/switch")
    if abs(math.fsum(m.p for m in given.law) - 1) > LAW_SUM:
        yield UsageError("the law does not sum to 1 within 1e-9", where=f"{where}/hypothesis/law")
    single = {key(e.outcome) for e in family.events if isinstance(e, OutcomeEvent)}
    seen: set[Key] = set()
    for i, mass in enumerate(given.law):
        k, at = key(mass.outcome), f"{where}/hypothesis/law/{i}/outcome"
        if k in seen:
            yield UsageError("the outcome stands twice in the law", where=at)
        seen.add(k)
        if mass.p > 0 and k not in single and not isinstance(mass.outcome, Crashed):
            yield UsageError("no `outcome` event has it", where=at)
    wanted = raised(family)
    if len(named) != (1 if wanted else 0):
        what = f"{len(named)} events hold A_H, which has {len(wanted)} outcomes"
        yield UsageError(what, where=f"{where}/events")
    for i, event in named:
        if {key(o) for o in event.outcomes} != wanted:
            yield UsageError(
                "is not A_H, the outcomes with mu_H above P", where=f"{where}/events/{i}/outcomes"
            )


def raised(family: Family) -> set[Key]:
    """The outcomes in A_H: no crash, and likelier under mu_H than under P; none without a hypothesis."""
    p = {key(m.outcome): m.p for m in family.reference or ()}
    law = () if family.hypothesis is None else family.hypothesis.law
    return {
        key(m.outcome) for m in law if not isinstance(m.outcome, Crashed) and m.p > p.get(key(m.outcome), 0.0)
    }
