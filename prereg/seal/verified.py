"""A verified study: the values that follow from the very bytes that were checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from prereg.codec.canonical import digest
from prereg.errors import VerificationFailed
from prereg.model.attempts import Tried, tried
from prereg.model.places import state
from prereg.model.plan import Shard, plan
from prereg.model.seal import Entry, Manifest, State
from prereg.model.study import Study
from prereg.seal.head_stamps import HeadStamps
from prereg.seal.lineage import Sealed
from prereg.seal.signers import Signatures
from prereg.seal.stamped import Stamp
from prereg.seal.trust import Trust
from prereg.store.files import read_in
from prereg.store.folder import Tree
from prereg.store.layout import StudyPaths
from prereg.store.ledger import head_of
from prereg.store.repo import Repo

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
        """The bodies of the `shard-stored` entries of each unit's present attempt, by unit and shard.

        Of a unit that is over it is the attempt that it ended in. What counts is here; the rest is in
        `stored_in_all`.
        """
        return present_shards(self.entries, self.study.protocol.attempts)

    @property
    def stored_in_all(self) -> dict[tuple[str, int, int], dict[str, Any]]:
        """The bodies of the `shard-stored` entries of every attempt, by unit, attempt and shard."""
        return stored_shards(self.entries)

    @property
    def tried(self) -> dict[str, Tried]:
        """The units that failed at least once; any other is in its first attempt."""
        return tried(self.entries, self.study.protocol.attempts)

    def attempt_of(self, unit: str) -> int:
        """The present attempt of a unit; of one that is over, the attempt it ended in."""
        return self.tried.get(unit, Tried()).attempt

    @property
    def invalid(self) -> dict[str, str]:
        """The units that are over, INVALID, each with the reason of its last failure."""
        return over_units(self.entries, self.study.protocol.attempts)

    def missing(self) -> list[Shard]:
        """The planned shards of units not over that their present attempt lacks, in protocol order."""
        stored, invalid = self.stored, self.invalid
        return [
            shard
            for shard in plan(self.study.protocol, self.study.seeds)
            if shard.unit.id not in invalid and (shard.unit.id, shard.index) not in stored
        ]

    def lost(self) -> frozenset[str]:
        """Units without complete evidence: INVALID, or with a shard missing."""
        return frozenset(self.invalid) | {shard.unit.id for shard in self.missing()}


def stored_shards(entries: Sequence[Entry]) -> dict[tuple[str, int, int], dict[str, Any]]:
    """The bodies of the `shard-stored` entries, by unit, attempt and shard; the first counts."""
    found: dict[tuple[str, int, int], dict[str, Any]] = {}
    for entry in entries:
        if entry.type == "shard-stored":
            body = entry.body
            found.setdefault((body["unit"], body["attempt"], body["shard"]), body)
    return found


def present_shards(entries: Sequence[Entry], allowed: int) -> dict[tuple[str, int], dict[str, Any]]:
    """Those of each unit's present attempt, by unit and shard; `allowed` is the protocol's `attempts`."""
    units = tried(entries, allowed)
    return {
        (unit, shard): body
        for (unit, attempt, shard), body in stored_shards(entries).items()
        if attempt == units.get(unit, Tried()).attempt
    }


def over_units(entries: Sequence[Entry], allowed: int) -> dict[str, str]:
    """The units that are over, with the reason of the failure that ended them."""
    return {unit: one.reason or "" for unit, one in tried(entries, allowed).items() if one.over}


@dataclass(slots=True, kw_only=True)
class Run:
    """What the steps have found so far; a step asks for what it needs and fails if an earlier one did."""

    paths: StudyPaths
    read_records: bool
    lenient: bool
    gate: bool = False
    """Whether a verb asks that is about to write, or just did."""
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

    def blob_id(self, name: str, like: str) -> str:
        """The id that git gives to a file that is not sealed, in the hash of `like`; opened if none was."""
        noted = self._get("noted", dict, 1).get(str(self.paths.root / name))
        if noted is not None and name not in self.opened:
            return str(noted[0 if len(like) == 40 else 1])
        data = self.opened[name] if name in self.opened else read_in(self.paths.root, name)[0]
        return Repo.blob_id(data, like=like)

    @property
    def head_stamps(self) -> HeadStamps:
        """The time stamps of the ledger's heads (section 22); what is wrong with them is for step 6."""
        return self._get("head_stamps", HeadStamps, 4)

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
        """Those of a sound chain, whatever they say; `told` are the same once that is checked too."""
        return self._get("entries", tuple, 6)

    @property
    def told(self) -> tuple[Entry, ...]:
        """The entries, what each says being held against the seal, the plan and the others."""
        return self._get("told", tuple, 6)

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
