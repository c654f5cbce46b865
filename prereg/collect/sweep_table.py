"""The table of a sweep, and what of an installed engine it leaves out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from prereg.codec.canonical import digest
from prereg.collect.sweep_walk import ASSISTANT
from prereg.errors import UsageError
from prereg.model.sweep import Case, Row, Table, Try
from prereg.store.files import read_once
from prereg.store.layout import harness_root

OFFERED = ("settings", "arguments", "processors", "criteria")
"""Kinds of names in the engine side's answer to `features`."""


def load_table(adapter: str) -> Table:
    """The table for engines of this adapter. Raises UsageError if there is none."""
    path = harness_root() / "sweep" / f"{adapter}.json"
    if not path.is_file():
        raise UsageError(
            f"no table of features for engines of the adapter {adapter!r}",
            where=str(path.parent),
            next_step="choose a build of another engine: prereg build --list",
        )
    return parse_table(read_once(path), where=str(path))


def check_drafter(table: Table, drafter: str) -> None:
    """Refuse a drafter that engines of the table do not take. Raises UsageError.

    llama-cpp-python's `draft_model` is an object that proposes tokens, and prompt lookup is the only one that
    it brings along.
    """
    if drafter == ASSISTANT and table.adapter == "llamacpp":
        raise UsageError(
            "engines of the adapter 'llamacpp' take no 'assistant': prompt-lookup is the only one there",
            where="--drafter",
            next_step="prereg sweep without --drafter",
        )


def parse_table(data: bytes, *, where: str) -> Table:
    """A table from its bytes. Raises UsageError if they are none."""
    try:
        value = json.loads(data)
        tries = tuple(Try(**entry) for entry in value["tries"])
        cases = tuple(_case(entry, tries) for entry in value["cases"])
        table = Table(
            adapter=value["adapter"],
            model=value["model"],
            drafter=value["drafter"],
            aliases=value["aliases"],
            excluded=value["excluded"],
            uncovered=value["uncovered"],
            cases=cases,
            digest=digest(data),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"is no table of features: {error!r}", where=where) from None
    names = [case.name for case in cases]
    if len(set(names)) != len(names):
        raise UsageError("two cases have one name", where=f"{where}#/cases")
    return table


def _case(value: Mapping[str, Any], tries: tuple[Try, ...]) -> Case:
    unknown = value.keys() - {"name", "features", "with", "source", "makes", "note", "deterministic", "tries"}
    if unknown:
        raise ValueError(f"a case has no {', '.join(sorted(unknown))}")
    return Case(
        name=value["name"],
        features=dict(value["features"]),
        beside=dict(value.get("with", {})),
        source=value["source"],
        makes=tuple(value.get("makes", ())),
        note=value.get("note", ""),
        deterministic=bool(value.get("deterministic", False)),
        tries=tuple(Try(**entry) for entry in value["tries"]) if "tries" in value else tries,
    )


def chosen(table: Table, only: Sequence[str]) -> tuple[Case, ...]:
    """The cases whose names match a pattern of `only`, or all. UsageError for a pattern that matches none."""
    for pattern in only:
        if not any(fnmatchcase(case.name, pattern) for case in table.cases):
            raise UsageError(
                f"no case is called {pattern!r}", where="--only", next_step="prereg sweep --build NAME --list"
            )
    return tuple(
        case for case in table.cases if not only or any(fnmatchcase(case.name, pattern) for pattern in only)
    )


def settings_of(case: Case, table: Table) -> set[str]:
    """The engine's own names of a case's features."""
    return {table.aliases.get(name, name) for name in (*case.features, *case.beside)}


def absent(case: Case, table: Table, offered: Mapping[str, Any]) -> set[str]:
    """Settings of a case that this release of the engine does not have."""
    return settings_of(case, table) - set(offered["settings"]) - set(offered["arguments"])


def left_out(table: Table, offered: Mapping[str, Any]) -> dict[str, str]:
    """What the engine offers and no case tries, by name, each with the reason.

    A processor or stopping rule counts as tried if a case names it in `makes`; a setting if a case sets it.
    """
    known: set[str] = set()
    for case in table.cases:
        if not absent(case, table, offered):
            known |= settings_of(case, table) | set(case.makes)
    names = [name for kind in OFFERED for name in offered[kind]]
    return {
        name: table.uncovered.get(name, "the table does not know it")
        for name in names
        if name not in known and name not in table.excluded
    }


def uncovered_row(name: str, reason: str) -> Row:
    """The row of a feature that no case tries."""
    return Row(
        case=name,
        verdict="NOT_COVERED",
        reason=reason,
        features={},
        beside={},
        source="",
        note="",
        tried=None,
        attempts=0,
        agreeing=0,
        tv_lower=None,
        tv_upper=None,
        witness_mass=None,
        event=None,
        event_gap=None,
        activity={},
        outcomes=0,
        proposals=0,
        accepted=0,
        runs_off=0,
        runs_on=0,
        crash_off={},
        crash_on={},
        failing_path=None,
        seconds=0.0,
    )
