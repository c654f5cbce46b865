"""What edition 2 asks of the study files: rows by build, records beside the tokens (sections 6 and 16)."""

from __future__ import annotations

from collections.abc import Iterator

from prereg.errors import UsageError
from prereg.model.law import Family, RecordEntry
from prereg.model.study import Configuration, RecordsPlan, Study


def edition_problems(study: Study) -> Iterator[UsageError]:
    """Members of edition 2 in a study of edition 1."""
    if study.protocol.since(2):
        return
    p, f = study.protocol, "protocol.json#"
    found = [f"{f}/sampling/{arm}/builds" for arm, s in p.sampling.items() if s.builds is not None]
    found += [f"{f}/configurations/{i}/records" for i, c in enumerate(p.configurations) if c.records]
    if p.hypotheses is not None:
        found.append(f"{f}/hypotheses")
    if p.runtime == "container":
        found.append(f"{f}/runtime")
    for name, family in study.events.configurations.items():
        for member in ("hypothesis", "records"):
            if getattr(family, member) is not None:
                found.append(f"events.json#/configurations/{name}/{member}")
    for i, prediction in enumerate(study.predictions.predictions):
        if prediction.claim.channel in ("records", "hypothesis"):
            found.append(f"predictions.json#/predictions/{i}/claim/channel")
    for where in found:
        yield UsageError(
            "belongs to edition 2, and the protocol says nothing of it",
            where=where,
            next_step='"edition": 2 in protocol.json',
        )


def build_problems(study: Study) -> Iterator[UsageError]:
    """Rows by build that fit no draws, or a build that draws nothing."""
    drawn = {c.build for c in study.protocol.drawn()}
    for arm, sampling in study.protocol.sampling.items():
        for build, grouping in (sampling.builds or {}).items():
            where = f"protocol.json#/sampling/{arm}/builds/{build}"
            if build not in drawn:
                yield UsageError(f"no configuration of a stage of draws has the build {build!r}", where=where)
            if sampling.draws % grouping.rows:
                what = f"{sampling.draws} draws are not a multiple of {grouping.rows} rows"
                yield UsageError(what, where=f"{where}/rows")


def records_problems(study: Study) -> Iterator[UsageError]:
    """Records where there can be none, and references that are missing, too many, or not of their form."""
    protocol = study.protocol
    drawn = {c.id for c in protocol.drawn()}
    for i, c in enumerate(protocol.configurations):
        if c.records is not None:
            where = f"protocol.json#/configurations/{i}/records"
            if protocol.decision.rule == "event-gap":
                yield UsageError("event-gap has no records beside the outcome", where=where)
            if c.adapter == "command":
                yield UsageError("a command returns nothing beside its outcome", where=where)
            if c.id not in drawn:
                yield UsageError(f"{c.id!r} is in no stage of draws, and has no records", where=where)
        family = study.events.configurations.get(c.id)
        if family is not None:
            yield from _reference_problems(c, family)


def _reference_problems(configuration: Configuration, family: Family) -> Iterator[UsageError]:
    plan = configuration.records
    where = f"events.json#/configurations/{configuration.id}/records"
    if plan is None or plan.reference == "none":
        if family.records is not None:
            yield UsageError("the protocol says of no reference for its records", where=where)
        return
    if family.records is None:
        what = "its records are held to a replay, and the reference is missing"
        yield UsageError(what, where=where, next_step="prereg events DIR")
        return
    seen: set[tuple[int, ...]] = set()
    for i, row in enumerate(family.records):
        if row.prefix in seen:
            yield UsageError("the prefix stands twice", where=f"{where}/{i}/prefix")
        seen.add(row.prefix)
        yield from _entry_problems(row.entry, plan, f"{where}/{i}/entry")
    if () not in seen:
        yield UsageError("the empty prefix is missing", where=where)


def _entry_problems(entry: RecordEntry, plan: RecordsPlan, where: str) -> Iterator[UsageError]:
    if fault := entry_fault(entry):
        yield UsageError(fault, where=where)
    if len(entry.values) < plan.told:
        yield UsageError(f"has {len(entry.values)} values; {plan.told} are told", where=f"{where}/values")


def entry_fault(entry: RecordEntry) -> str | None:
    """What the two lists of an entry have against each other, or None (section 7)."""
    if len(entry.tokens) != len(entry.values):
        return "has not as many values as tokens"
    if any(a >= b for a, b in zip(entry.tokens, entry.tokens[1:], strict=False)):
        return "has tokens that are not ascending and all different"
    return None
