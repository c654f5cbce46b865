"""A verified study: the values that follow from the very bytes that were checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from prereg.codec.canonical import digest
from prereg.errors import VerificationFailed
from prereg.model.places import state
from prereg.model.plan import Shard, plan
from prereg.model.seal import Entry, Manifest, State
from prereg.model.study import Study
from prereg.seal.lineage import Sealed
from prereg.seal.signers import Signatures
from prereg.seal.stamped import Stamp
from prereg.seal.trust import Trust
from prereg.store.files import read_in
from prereg.store.folder import Tree
from prereg.store.layout import StudyPaths
from prereg.store.ledger import head_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedStudy:
    """What a gate lets through."""

    paths: StudyPaths
    study: Study
    manifest: Manifest
    seal: str
    """The seal digest."""
    manifest_bytes: bytes
    """The bytes of seal/manifest.json: what was hashed and parsed."""
    signature: bytes
    """The bytes of seal/manifest.json.sig: what was checked."""
    entries: tuple[Entry, ...]
    state: State
    head: str
    """The ledger's head: the digest of its last line."""
    signed: int
    """How many of the entries the signed head covers; all, but after a killed verb."""
    files: Mapping[str, bytes]
    """Every sealed file, by path: what was hashed is what is here."""
    signatures: Signatures | None
    """Who has signed the seal; None where its author's signature is all that is needed."""
    stamp: Stamp
    """The state of its time stamp."""

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


@dataclass(slots=True, kw_only=True)
class Run:
    """What the steps have found so far; a step asks for what it needs and fails if an earlier one did."""

    paths: StudyPaths
    read_records: bool
    lenient: bool
    found: dict[str, object] = field(default_factory=dict)
    opened: dict[str, bytes] = field(default_factory=dict)
    """The bytes of files that are not sealed, by path."""

    @property
    def tree(self) -> Tree:
        return self._get("tree", Tree, 1)

    @property
    def manifest_bytes(self) -> bytes:
        return self._get("manifest_bytes", bytes, 2)

    @property
    def manifest(self) -> Manifest:
        return self._get("manifest", Manifest, 2)

    @property
    def files(self) -> dict[str, bytes]:
        return self._get("files", dict, 3)

    @property
    def lineage(self) -> tuple[Sealed, ...]:
        """Every seal by its manifest, oldest first; the last is the present one."""
        return self._get("lineage", tuple, 2)

    @property
    def signatures(self) -> dict[str, bytes]:
        """The bytes of every seal's signature, by seal digest."""
        return self._get("signatures", dict, 4)

    @property
    def stamp(self) -> Stamp:
        return self._get("stamp", Stamp, 4)

    def read(self, name: str) -> bytes:
        """The bytes of a file that is not sealed, opened once for every step that asks for it.

        Raises VerificationFailed, also if it is missing.
        """
        if name not in self.opened:
            self.opened[name] = read_in(self.paths.root, name)[0]
        return self.opened[name]

    @property
    def trust(self) -> Trust:
        return self._get("trust", Trust, 4)

    @property
    def study(self) -> Study:
        return self._get("study", Study, 5)

    @property
    def ledger(self) -> bytes:
        return self._get("ledger", bytes, 6)

    @property
    def entries(self) -> tuple[Entry, ...]:
        return self._get("entries", tuple, 6)

    @property
    def seal(self) -> str:
        return digest(self.manifest_bytes)

    def planned(self) -> dict[tuple[str, int], Shard]:
        shards = plan(self.study.protocol, self.study.seeds)
        return {(s.unit.id, s.index): s for s in shards}

    def result(self) -> VerifiedStudy:
        return VerifiedStudy(
            paths=self.paths,
            study=self.study,
            manifest=self.manifest,
            seal=self.seal,
            manifest_bytes=self.manifest_bytes,
            signature=self.signatures[self.seal],
            entries=self.entries,
            state=state(self.entries),
            head=head_of(self.ledger),
            signed=self._get("signed", int, 6),
            files=self.files,
            signatures=cast("Signatures | None", self.found.get("cosigned")),
            stamp=self.stamp,
        )

    def _get(self, name: str, kind: type[T], step: int) -> T:
        value = self.found.get(name)
        if not isinstance(value, kind):
            raise VerificationFailed(f"cannot be checked: step {step} failed")
        return value
