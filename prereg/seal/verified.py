"""A verified study: the values that follow from the very bytes that were checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prereg.model.plan import Shard, plan
from prereg.model.seal import Entry, Manifest, State
from prereg.model.study import Study
from prereg.store.layout import StudyPaths


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedStudy:
    """What a gate lets through."""

    paths: StudyPaths
    study: Study
    manifest: Manifest
    seal: str
    """The seal digest."""
    entries: tuple[Entry, ...]
    state: State
    head: str
    """The ledger's head: the digest of its last line."""
    signed: int
    """How many of the entries the signed head covers; all, but after a killed verb."""
    files: Mapping[str, bytes]
    """Every sealed file, by path: what was hashed is what is here."""

    @property
    def stored(self) -> dict[tuple[str, int], dict[str, Any]]:
        """The bodies of the `shard-stored` entries, by unit and shard."""
        return stored_shards(self.entries)

    @property
    def invalid(self) -> dict[str, str]:
        """The units that `unit-invalid` names, with the first reason given."""
        return invalid_units(self.entries)

    def missing(self) -> list[Shard]:
        """The planned shards of valid units that the ledger does not hold, in protocol order."""
        stored, invalid = self.stored, self.invalid
        return [
            shard
            for shard in plan(self.study.protocol, self.study.seeds)
            if shard.unit.id not in invalid and (shard.unit.id, shard.index) not in stored
        ]

    def lost(self) -> frozenset[str]:
        """Units without complete evidence: INVALID, or with a shard missing."""
        return frozenset(self.invalid) | {shard.unit.id for shard in self.missing()}


def stored_shards(entries: tuple[Entry, ...]) -> dict[tuple[str, int], dict[str, Any]]:
    """The bodies of the `shard-stored` entries, by unit and shard; the first counts."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for entry in entries:
        if entry.type == "shard-stored":
            found.setdefault((entry.body["unit"], entry.body["shard"]), entry.body)
    return found


def invalid_units(entries: tuple[Entry, ...]) -> dict[str, str]:
    """The units that `unit-invalid` names, with the first reason given."""
    found: dict[str, str] = {}
    for entry in entries:
        if entry.type == "unit-invalid":
            found.setdefault(entry.body["unit"], entry.body["reason"])
    return found
