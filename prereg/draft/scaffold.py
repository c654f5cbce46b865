"""`prereg draft`: a folder that passes `prereg check` once its marked blanks are filled."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prereg.codec.convert import read_authored
from prereg.codec.overlap import Span, folded
from prereg.errors import PreregError, UsageError, WrongState
from prereg.model.plan import requests_of
from prereg.model.study import Protocol
from prereg.store.files import write_whole
from prereg.store.layout import StudyPaths

TEMPLATES = ("conformance", "two-arm", "exact", "main")
FIRST_SEED = 1_000_000_000
"""Where the seeds of a repository's first study begin: far from the small seeds that people try by hand."""

MODELS = "models.json"
"""What a template holds for `prereg probe`: the tiny model of each engine. No part of a study."""

_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Blanks:
    """What only the author knows; None leaves the blank marked."""

    title: str | None = None
    question: str | None = None
    author: str | None = None
    principal: str | None = None


def draft_study(
    folder: Path, template: str, blanks: Blanks, taken: Iterable[Span], *, exact: bool = False
) -> StudyPaths:
    """Write a new study folder from `template`, with seeds above every interval that is `taken`.

    `exact` keeps the exact stage alone. Raises WrongState if the folder exists and UsageError for a bad name,
    an unknown template, or `exact` with one that has no exact stage.
    """
    if template not in TEMPLATES:
        raise UsageError(
            f"there is no template {template!r}",
            where="--template",
            next_step=f"one of {', '.join(TEMPLATES)}",
        )
    root = folder.absolute()
    if not _ID.fullmatch(root.name):
        raise UsageError(
            f"{root.name!r} cannot name a study: lower-case letters, digits, - and _, 64 at most",
            where=str(folder),
        )
    if root.exists() or root.is_symlink():
        raise WrongState("the folder exists", where=str(folder), next_step="choose a new name")
    files = render(root.name, template, blanks, taken, exact=exact)
    for name, data in files.items():
        write_whole(root / name, data)
    return StudyPaths(root=root)


def render(
    study: str, template: str, blanks: Blanks, taken: Iterable[Span], *, exact: bool = False
) -> dict[str, bytes]:
    """The files of a new study, by name. Raises UsageError as `draft_study` does."""
    here = Path(__file__).parent / "templates"
    out: dict[str, bytes] = {}
    for source in sorted((here / template).iterdir()):
        if not source.is_file() or source.name == MODELS:
            continue
        if source.suffix == ".json":
            value = json.loads(source.read_bytes())
            value["study"] = study
            if exact and source.name in WALKED_ALONE:
                value = WALKED_ALONE[source.name](value)
            out[source.name] = _pretty(_fill(value, blanks) if source.name == "protocol.json" else value)
        else:
            out[source.name] = source.read_bytes()
    out.setdefault("NOTES.md", (here / "NOTES.md").read_bytes())
    out[".gitattributes"] = (here / "gitattributes").read_bytes()
    out["searches.jsonl"] = b""
    protocol = read_authored(out["protocol.json"], "protocol", Protocol, where="protocol.json")
    out["seeds.json"] = _pretty(plan_seeds(protocol, first_free(taken)))
    return out


def _protocol_walked_alone(value: dict[str, Any]) -> dict[str, Any]:
    """A template's protocol with its exact stage alone, and the configurations that are in it."""
    stages = [stage for stage in value["stages"] if stage.get("channel") == "exact"]
    if not stages:
        raise UsageError(
            f"the template {value['template']!r} has no exact stage",
            where="--exact",
            next_step="leave the option out, or take the template exact or main",
        )
    kept = {name for stage in stages for name in stage["configurations"]}
    # Records belong to draws, and compatibility by draws has no budget where there are none.
    unrecorded = [
        {key: part for key, part in each.items() if key != "records"}
        for each in value["configurations"]
        if each["id"] in kept
    ]
    mechanisms = {"hypotheses": {**value["hypotheses"], "alpha": None}} if "hypotheses" in value else {}
    return {
        **value,
        **mechanisms,
        "configurations": unrecorded,
        "stages": stages,
        "sampling": {},
        "decision": {"rule": "exact", "threshold": 0, "calibration_allowance": None},
        # There are no draws that could be held against the trees.
        "exact": {**value["exact"], "premise_alpha": None},
    }


def _predictions_walked_alone(value: dict[str, Any]) -> dict[str, Any]:
    kept = [each for each in value["predictions"] if each["claim"].get("channel") == "exact"]
    return {**value, "predictions": kept}


WALKED_ALONE: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "protocol.json": _protocol_walked_alone,
    "predictions.json": _predictions_walked_alone,
}
"""What `--exact` makes of a template's files."""


def first_free(taken: Iterable[Span]) -> int:
    """A first seed above every interval that the repository reserves or has used, rounded up to a million.

    Counting by the low 32 bits keeps the new blocks apart even for an engine that truncates seeds.
    """
    ends = [high for span in taken for _, high in folded(span.first, span.end)]
    top = max([FIRST_SEED, *ends])
    first = -(-top // 1_000_000) * 1_000_000
    if first >= 2**32 - 1_000_000:
        raise PreregError(
            "no room above the reserved seeds at 32 bits",
            where="seeds.json",
            next_step="choose the blocks by hand",
        )
    return first


def plan_seeds(protocol: Protocol, first: int) -> dict[str, Any]:
    """seeds.json: one block a unit, end to end from `first`."""
    purposes = {stage.id: stage.purpose for stage in protocol.stages}
    blocks = []
    for unit in protocol.units():
        end = first + requests_of(protocol, unit)
        blocks.append(
            {
                "id": f"{unit.stage}-{unit.configuration}-{unit.arm}",
                "role": purposes[unit.stage],
                "unit": unit.id,
                "first": str(first),
                "end": str(end),
            }
        )
        first = end
    return {"schema": "prereg/seeds/v1", "study": protocol.study, "blocks": blocks}


def _fill(value: dict[str, Any], blanks: Blanks) -> dict[str, Any]:
    given: Mapping[str, str | None] = {"title": blanks.title, "question": blanks.question}
    for key, text in given.items():
        if text is not None:
            value[key] = text
    if blanks.author is not None:
        value["authors"][0]["name"] = blanks.author
    if blanks.principal is not None:
        value["authors"][0]["principal"] = blanks.principal
    return value


def _pretty(value: object) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()
