"""JSON to model types and back, after the schema has accepted the JSON."""

from __future__ import annotations

import dataclasses
import functools
import typing
from typing import Any, TypeVar, cast

from prereg.codec.canonical import Json, loads, loads_machine
from prereg.codec.schema import validate
from prereg.errors import VerificationFailed
from prereg.model import beside, exact, hypotheses, law, predictions, record, seal, study, verdict

T = TypeVar("T")

_TAGGED: tuple[Any, ...] = (law.Event, law.Rule, predictions.Claim, study.Drafter)

_LATER: dict[type[Any], tuple[str, ...]] = {
    study.Stage: ("channel",),
    study.Configuration: ("records",),
    study.Sampling: ("builds",),
    study.Ceilings: ("memory_mib",),
    study.Protocol: ("exact", "edition", "hypotheses", "signers", "timestamp"),
    predictions.VerdictClaim: ("channel",),
    predictions.CountClaim: ("at_least", "at_most", "channel"),
    hypotheses.Hypothesis: (),
    law.Family: ("hypothesis", "records"),
    record.Record: ("record",),
    record.ShardMeta: ("tree",),
    verdict.Decision: ("exposed", "records", "hypothesis", "attempts", "duplicates"),
    exact.ExactDecision: ("hypothesis", "attempts", "duplicates"),
    verdict.Decisions: ("exact",),
    seal.Manifest: ("amends", "images"),
}
"""Keys that a file may lack: what is absent stays absent, so that older bytes come out as they went in. What
a value is made of comes before it."""

_RENAMED: dict[type[Any], tuple[str, str]] = {
    predictions.VerdictClaim: ("in_", "in"),
    hypotheses.Hypothesis: ("class_", "class"),
}
"""Fields whose JSON key is a keyword of Python."""


@functools.cache
def _converter() -> Any:
    import cattrs
    from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

    conv = cattrs.Converter(forbid_extra_keys=True, detailed_validation=False)
    for union in _TAGGED:
        conv.register_structure_hook(union, functools.partial(_structure_tagged, conv, _by_kind(union)))
    conv.register_structure_hook(law.Outcome, lambda value, _: outcome_from(value))
    conv.register_structure_hook(law.JsonScalar, lambda value, _: value)
    conv.register_structure_hook(law.RecordEntry, lambda value, _: entry_from(value))
    # A lost unit's exposure is null, and in edition 1 there is none: two things.
    optional_exposure: Any = beside.Exposure | None
    conv.register_structure_hook(optional_exposure, lambda value, _: beside.Exposure(draws=value))
    conv.register_unstructure_hook(beside.Exposure, lambda value: value.draws)
    conv.register_structure_hook(float, lambda value, _: float(value))
    optional_drafter: Any = study.Drafter | None
    conv.register_structure_hook(
        optional_drafter,
        lambda value, _: None if value is None else conv.structure(value, cast(Any, study.Drafter)),
    )
    for cls, names in _LATER.items():
        settings: dict[str, Any] = {name: override(omit_if_default=True) for name in names}
        if cls in _RENAMED:
            field, key = _RENAMED[cls]
            settings[field] = override(rename=key)
            conv.register_structure_hook(cls, make_dict_structure_fn(cls, conv, **settings))
        conv.register_unstructure_hook(cls, make_dict_unstructure_fn(cls, conv, **settings))
    return conv


def _structure_tagged(conv: Any, by_kind: dict[Any, Any], value: Any, _: Any) -> Any:
    return conv.structure(value, by_kind[value["kind"]])


def _by_kind(union: Any) -> dict[Any, Any]:
    """The members of a tagged union by the default of their `kind` field."""
    return {
        next(f.default for f in dataclasses.fields(cls) if f.name == "kind"): cls
        for cls in typing.get_args(union)
    }


def outcome_from(value: dict[str, Any]) -> law.Outcome:
    """An outcome from its JSON object (already validated)."""
    if "tokens" in value:
        return law.Decoded(tokens=tuple(value["tokens"]), finish=value["finish"])
    if "crash" in value:
        return law.Crashed(crash=value["crash"])
    return law.Valued(value=value["value"])


def entry_from(value: dict[str, Any]) -> law.RecordEntry:
    """One entry of a record from its JSON object (already validated)."""
    return law.RecordEntry(tokens=tuple(value["tokens"]), values=tuple(value["values"]))


def from_json(value: Json, cls: type[T], *, where: str) -> T:
    """Build `cls` from validated JSON. Raises VerificationFailed when the two do not fit."""
    try:
        return cast(T, _converter().structure(value, cls))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise VerificationFailed(f"not a {cls.__name__}: {error!r}", where=where) from None


def to_json(value: object) -> Any:
    """The JSON of a model value: dicts, lists, strings, numbers, booleans and None."""
    return _plain(_converter().unstructure(value))


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return value


def read_authored(data: bytes, name: str, cls: type[T], *, where: str) -> T:
    """Parse, validate and build a file that a person wrote (schema `name`)."""
    value = loads(data, where=where)
    validate(value, name, where=where, authored=True)
    return from_json(value, cls, where=where)


def read_machine(data: bytes, name: str, cls: type[T], *, where: str) -> T:
    """Parse, validate and build a file that a program wrote: canonical bytes only."""
    value = loads_machine(data, where=where)
    validate(value, name, where=where)
    return from_json(value, cls, where=where)
