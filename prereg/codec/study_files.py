"""The authored files of a study, parsed together and checked against each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prereg.codec.convert import read_authored
from prereg.codec.mechanisms import mechanism_problems
from prereg.codec.second_edition import build_problems, edition_problems, records_problems
from prereg.codec.third_edition import third_edition_problems
from prereg.errors import UsageError
from prereg.model.hypotheses import Hypotheses
from prereg.model.law import Crashed, Events, OutcomeEvent, Predicates, SetEvent
from prereg.model.outcomes import Key, key
from prereg.model.plan import requests_of
from prereg.model.predictions import Predictions, VerdictClaim
from prereg.model.study import Assistant, Channel, Protocol, Seeds, Study

AUTHORED = ("protocol.json", "seeds.json", "events.json", "predicates.json", "predictions.json")
HYPOTHESES = "hypotheses.json"
"""Authored too, where mechanisms are registered (section 15)."""
MAX_SHARDS = 100_000
"""Shards of a unit; their names have five digits (section 6)."""
BLANK = "<<FILL"
"""What `draft` writes where the author must."""

VERDICTS = {
    "channel-S": ("FAILS", "NOT_REJECTED", "INCONCLUSIVE", "VOID", "INVALID"),
    "event-gap": ("DIFFERS", "NOT_REJECTED", "INVALID"),
    "exact": ("DEPARTS", "EQUAL_WITHIN_TOLERANCE", "INCONCLUSIVE", "VOID", "INVALID"),
    "records": ("INCOMPLETE", "INVALID", "VOID", "INCONCLUSIVE", "FAILS", "NOT_REJECTED"),
    "hypothesis": ("COMPATIBLE", "NOT_COMPATIBLE", "VOID", "INVALID"),
}
"""The verdicts that each rule can return (docs/formats.md sections 10 and 14 to 16)."""


def parse_study(files: Mapping[str, bytes]) -> Study:
    """Build a Study from the bytes of its authored files and check every cross reference.

    Raises UsageError (or a codec error) that names the file and the JSON pointer of the first fault.
    """
    for name in AUTHORED:
        if name not in files:
            raise UsageError("the file is missing", where=name, next_step=_REMEDY.get(name))
    protocol = read_authored(files["protocol.json"], "protocol", Protocol, where="protocol.json")
    study = Study(
        protocol=protocol,
        seeds=read_authored(files["seeds.json"], "seeds", Seeds, where="seeds.json"),
        events=read_authored(files["events.json"], "events", Events, where="events.json"),
        predicates=read_authored(files["predicates.json"], "predicates", Predicates, where="predicates.json"),
        predictions=read_authored(
            files["predictions.json"], "predictions", Predictions, where="predictions.json"
        ),
        hypotheses=None
        if HYPOTHESES not in files or not protocol.since(2)  # in edition 1 it is a file like any other
        else read_authored(files[HYPOTHESES], "hypotheses", Hypotheses, where=HYPOTHESES),
    )
    for problem in cross_references(study):
        raise problem
    return study


_REMEDY = {"events.json": "prereg events DIR builds it from the oracle"}


def cross_references(study: Study) -> Iterable[UsageError]:
    """Every reference of the study files that leads nowhere, and every size that does not fit."""
    yield from _protocol_problems(study.protocol)
    yield from _signing_problems(study.protocol)
    yield from edition_problems(study)
    yield from third_edition_problems(study.protocol)
    yield from build_problems(study)
    yield from _seed_problems(study)
    yield from _event_problems(study)
    yield from records_problems(study)
    yield from mechanism_problems(study)
    yield from _prediction_problems(study)


def _bad(what: str, where: str) -> UsageError:
    return UsageError(what, where=where)


def _duplicates(names: Iterable[str], where: str) -> Iterable[UsageError]:
    seen: set[str] = set()
    for i, name in enumerate(names):
        if name in seen:
            yield _bad(f"the id {name!r} stands twice", f"{where}/{i}/id")
        seen.add(name)


def _signing_problems(p: Protocol) -> Iterable[UsageError]:
    """Who signs the seal, and when it was (sections 17 and 18)."""
    f = "protocol.json#"
    for name in ("signers", "timestamp"):
        if getattr(p, name) is not None and not p.since(2):
            yield _bad(f"a study of edition 1 has no {name}", f"{f}/{name}")
    if p.signers is not None and p.signers.need > len(p.signers.principals):
        yield _bad(
            f"is {p.signers.need}, but {len(p.signers.principals)} principals are named", f"{f}/signers/need"
        )


def _protocol_problems(p: Protocol) -> Iterable[UsageError]:
    f = "protocol.json#"
    yield from _duplicates((a.id for a in p.arms), f"{f}/arms")
    yield from _duplicates((c.id for c in p.configurations), f"{f}/configurations")
    yield from _duplicates((s.id for s in p.stages), f"{f}/stages")
    if sorted(a.role for a in p.arms) != ["reference", "test"]:
        yield _bad("one arm must have role reference and one role test", f"{f}/arms")
    drawn = any(s.channel == "draws" for s in p.stages)
    if set(p.sampling) != ({a.id for a in p.arms} if drawn else set()):
        what = "sampling must name exactly the arms" if drawn else "a study without draws has no sampling"
        yield _bad(what, f"{f}/sampling")
    for arm, s in p.sampling.items():
        if s.draws % s.rows:
            yield _bad(f"{s.draws} draws are not a multiple of {s.rows} rows", f"{f}/sampling/{arm}/draws")
    yield from _shard_problems(p)
    for i, c in enumerate(p.configurations):
        at = f"{f}/configurations/{i}"
        if c.model is not None and c.model not in p.models:
            yield _bad(f"there is no model {c.model!r}", f"{at}/model")
        if c.prompt is not None and c.prompt not in p.prompts:
            yield _bad(f"there is no prompt {c.prompt!r}", f"{at}/prompt")
        if c.adapter == "command" and c.command is None:
            yield _bad("the adapter `command` needs a command", f"{at}/command")
        if c.adapter != "command" and (c.model is None or c.prompt is None or c.horizon is None):
            yield _bad("an engine needs a model, a prompt and a horizon", at)
    known = {c.id for c in p.configurations}
    for i, stage in enumerate(p.stages):
        for j, name in enumerate(stage.configurations):
            if name not in known:
                yield _bad(f"there is no configuration {name!r}", f"{f}/stages/{i}/configurations/{j}")
    channels: tuple[Channel, ...] = ("draws", "exact")
    for i, c in enumerate(p.configurations):
        counts = [
            sum(c.id in s.configurations for s in p.stages if s.channel == channel) for channel in channels
        ]
        if not any(counts):
            yield _bad(f"{c.id!r} stands in no stage", f"{f}/configurations/{i}/id")
        for channel, count in zip(channels, counts, strict=True):
            if count > 1:
                yield _bad(f"{c.id!r} stands in {count} stages of {channel}", f"{f}/configurations/{i}/id")
    if p.decision.rule == "channel-S" and p.decision.calibration_allowance is None:
        yield _bad("channel-S needs a calibration allowance", f"{f}/decision/calibration_allowance")
    if p.decision.rule == "event-gap" and p.decision.calibration_allowance is not None:
        yield _bad("event-gap has no calibration", f"{f}/decision/calibration_allowance")
    if known >= {name for s in p.stages for name in s.configurations}:
        yield from _exact_problems(p)


def _shard_problems(p: Protocol) -> Iterable[UsageError]:
    """Units of more shards than there are names of five digits (section 6)."""
    seen: set[str] = set()
    for build in sorted({c.build for c in p.drawn()}):
        for arm, sampling in p.sampling.items():
            own = f"/builds/{build}" if build in (sampling.builds or {}) else ""
            where = f"protocol.json#/sampling/{arm}{own}/shard_requests"
            shards = sampling.of_build(build).shards
            if shards > MAX_SHARDS and where not in seen:
                seen.add(where)
                what = f"would make {shards:,} shards of a unit; {MAX_SHARDS:,} are the most"
                yield UsageError(what, where=where, next_step="raise shard_requests, or rows")


def _exact_problems(p: Protocol) -> Iterable[UsageError]:
    """What an exact stage asks of the rest of the protocol; its stages name configurations that are there."""
    f = "protocol.json#"
    exact = [i for i, s in enumerate(p.stages) if s.channel == "exact"]
    if len(exact) > 1:
        yield _bad("there is more than one exact stage", f"{f}/stages/{exact[1]}/channel")
    if exact and p.exact is None:
        yield _bad("an exact stage needs the plan of its walks", f"{f}/exact")
    if not exact and p.exact is not None:
        yield _bad("there is no exact stage", f"{f}/exact")
    alone = len(exact) == len(p.stages)
    if (p.decision.rule == "exact") != alone:
        what = "a study without draws is decided by the rule `exact`, and no other is"
        yield _bad(what, f"{f}/decision/rule")
    if p.decision.rule == "exact" and p.decision.threshold != 0:
        yield _bad("the rule `exact` has the threshold 0: it decides nothing else", f"{f}/decision/threshold")
    if p.decision.rule == "exact" and p.decision.calibration_allowance is not None:
        yield _bad("the rule `exact` has no calibration", f"{f}/decision/calibration_allowance")
    walked = {c.id for c in p.walked()}
    for i, c in enumerate(p.configurations):
        at = f"{f}/configurations/{i}"
        if isinstance(c.drafter, Assistant) and c.drafter.model not in p.models:
            yield _bad(f"there is no model {c.drafter.model!r}", f"{at}/drafter/model")
        if c.id in walked and c.adapter == "command":
            yield _bad("a command's choices cannot be walked", f"{at}/adapter")
        if c.id in walked and c.drafter is None:
            yield _bad("a configuration of an exact stage needs a drafter", f"{at}/drafter")
    tested = p.exact is not None and p.exact.premise_alpha is not None
    if tested and not walked & {c.id for c in p.drawn()}:
        what = "no configuration is in a stage of draws and in the exact one: the premise is tested on none"
        yield _bad(what, f"{f}/exact/premise_alpha")


def _seed_problems(study: Study) -> Iterable[UsageError]:
    p, f = study.protocol, "seeds.json#/blocks"
    if study.seeds.study != p.study:
        yield _bad(f"belongs to study {study.seeds.study!r}, not {p.study!r}", "seeds.json#/study")
    yield from _duplicates((b.id for b in study.seeds.blocks), f)
    units = {u.id: u for u in p.units()}
    purposes = {s.id: s.purpose for s in p.stages}
    for i, b in enumerate(study.seeds.blocks):
        if b.unit not in units:
            what = f"there is no unit {b.unit!r}; there are {', '.join(units)}"
            yield UsageError(what, where=f"{f}/{i}/unit", next_step="prereg seeds plan DIR")
            continue
        unit = units[b.unit]
        need = requests_of(p, unit) if p.is_exact(unit) or unit.arm in p.sampling else 0
        if b.stop - b.start != need:
            what = f"holds {b.stop - b.start} seeds; {b.unit} needs {need}"
            yield UsageError(what, where=f"{f}/{i}", next_step="prereg seeds plan DIR")
        if b.stop > 2**64:
            yield _bad("ends past 2^64", f"{f}/{i}/end")
        if b.role != purposes[unit.stage]:
            yield _bad(f"its role is {b.role}, its stage's purpose {purposes[unit.stage]}", f"{f}/{i}/role")
    for unit_id in units:
        count = sum(b.unit == unit_id for b in study.seeds.blocks)
        if count != 1:
            yield _bad(f"{count} blocks for unit {unit_id}; there must be one", f)


def _event_problems(study: Study) -> Iterable[UsageError]:
    p, f = study.protocol, "events.json#/configurations"
    if study.events.study != p.study:
        yield _bad(f"belongs to study {study.events.study!r}, not {p.study!r}", "events.json#/study")
    if study.predicates.study != p.study:
        yield _bad(f"belongs to study {study.predicates.study!r}, not {p.study!r}", "predicates.json#/study")
    if set(study.events.configurations) != {c.id for c in p.configurations}:
        yield _bad("must have exactly the protocol's configurations", f)
    drawn = {c.id for c in p.drawn()}
    for name, family in study.events.configurations.items():
        yield from _duplicates((e.id for e in family.events), f"{f}/{name}/events")
        if p.decision.rule == "channel-S" and name in drawn and family.reference is None:
            yield _bad("channel-S needs the reference law", f"{f}/{name}/reference")
        if p.decision.rule == "event-gap" and family.reference is not None:
            yield _bad("event-gap has no reference law", f"{f}/{name}/reference")
        for i, event in enumerate(family.events):
            named = event.outcomes if isinstance(event, SetEvent) else ()
            named = (event.outcome,) if isinstance(event, OutcomeEvent) else named
            if any(isinstance(o, Crashed) for o in named):
                yield _bad("only the event `crash` contains crashes", f"{f}/{name}/events/{i}")
        seen: set[Key] = set()
        for i, mass in enumerate(family.reference or ()):
            outcome = key(mass.outcome)
            if outcome in seen:
                yield _bad("the outcome stands twice in the reference", f"{f}/{name}/reference/{i}/outcome")
            seen.add(outcome)
        if family.reference is not None and abs(sum(m.p for m in family.reference) - 1) > 1e-6:
            yield _bad("the reference law does not sum to 1 within 1e-6", f"{f}/{name}/reference")
    referred = any(family.reference is not None for family in study.events.configurations.values())
    if referred and study.events.harness_sha256 is None:
        yield _bad("a reference needs the harness that made it", "events.json#/harness_sha256")
    if not referred and study.events.harness_sha256 is not None:
        yield _bad("names a harness without a reference", "events.json#/harness_sha256")
    yield from _duplicates((q.id for q in study.predicates.predicates), "predicates.json#/predicates")
    known = {q.id for q in study.predicates.predicates}
    for i, c in enumerate(p.configurations):
        if p.decision.rule == "event-gap" and c.predicates:
            yield _bad("event-gap has no predicates", f"protocol.json#/configurations/{i}/predicates")
        for j, name in enumerate(c.predicates):
            if name not in known:
                yield _bad(
                    f"there is no predicate {name!r}", f"protocol.json#/configurations/{i}/predicates/{j}"
                )


def _prediction_problems(study: Study) -> Iterable[UsageError]:
    p, f = study.protocol, "predictions.json#/predictions"
    if study.predictions.study != p.study:
        yield _bad(
            f"belongs to study {study.predictions.study!r}, not {p.study!r}", "predictions.json#/study"
        )
    yield from _duplicates((x.id for x in study.predictions.predictions), f)
    ids = {c.id for c in p.configurations}
    drawn = {c.id for c in p.drawn()}
    inside = {
        "draws": drawn,
        "exact": {c.id for c in p.walked()},
        "records": {c.id for c in p.drawn() if c.records is not None},
        "hypothesis": {name for name in drawn if study.registered(name) is not None},
    }
    missing = {
        "draws": "is in no stage of draws",
        "exact": "is in no stage of exact",
        "records": "has no records",
        "hypothesis": "has no registered hypothesis in a stage of draws",
    }
    for i, x in enumerate(study.predictions.predictions):
        claim = x.claim
        names: tuple[str, ...]
        verdicts: tuple[str, ...]
        if isinstance(claim, VerdictClaim):
            names, verdicts = (claim.configuration,), claim.in_
        else:
            names, verdicts = claim.configurations, (claim.verdict,)
        rule = p.decision.rule if claim.channel == "draws" else claim.channel
        for name in names:
            if name not in ids:
                yield _bad(f"there is no configuration {name!r}", f"{f}/{i}/claim")
            elif name not in inside[claim.channel]:
                yield _bad(f"{name!r} {missing[claim.channel]}", f"{f}/{i}/claim")
        for verdict in verdicts:
            if verdict not in VERDICTS[rule]:
                yield _bad(f"{rule} never says {verdict}", f"{f}/{i}/claim")
