"""The study of exact_fixture in edition 3, with failures, attempts and second results; no engine runs.

What happened, told here from docs/formats.md alone, in three runs of the collector:
1. the off arm's draws are stored; of the on arm's one shard is, then its engine fails; the run is killed;
2. the on arm is tried again and stored, and a shard of it comes twice more: once the same, once with three
   draws that are not; then `other` is walked, and the run ends with its on arm begun and not stored;
3. that is begun again, fails, is walked in a second attempt, and comes as another tree too; `same` is walked
   in one arm and lost to the unit's ceiling in the other; a shard of the first run comes again, not the same.

    paths = make_third_study(tmp_path)
    study_fixture.seal(paths)
    collect_third(paths)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import exact_fixture
from exact_leaves import leaves_of, tree_meta
from study_fixture import ENVIRONMENTS, shard_meta, signing_key

from prereg.codec.canonical import digest, dump_file
from prereg.codec.convert import to_json
from prereg.model.law import Decoded
from prereg.model.plan import Shard, plan
from prereg.model.record import LeafRecord, Record, ShardMeta
from prereg.seal.finish import sign_head_and_commit
from prereg.seal.leaves import encode_tree
from prereg.seal.packing import Encoded
from prereg.seal.records import encode_shard
from prereg.seal.verified import VerifiedStudy
from prereg.seal.verify import verify_study
from prereg.store.files import write_whole
from prereg.store.layout import StudyPaths
from prereg.store.ledger import LedgerWriter

Lines = Sequence[Record | LeafRecord]
Again = Callable[[Any], Any]
"""A change of one record or leaf, as another run of the engine might make it."""


def third(protocol: dict[str, Any]) -> None:
    """Edition 3: two attempts, and a ceiling leaves the verdict open."""
    protocol |= {"edition": 3, "attempts": 2}
    protocol["ceilings"]["on_ceiling"] = "INCONCLUSIVE"


def make_third_study(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any] = lambda protocol: None
) -> StudyPaths:
    """The study, unsealed, in a repository at `tmp_path/repo`; `change` may alter its protocol."""

    def changed(protocol: dict[str, Any]) -> None:
        third(protocol)
        change(protocol)

    return exact_fixture.make_exact_study(tmp_path, changed)


@dataclasses.dataclass(slots=True, kw_only=True)
class Teller:
    """Tells a ledger what happened, and writes what was stored."""

    writer: LedgerWriter
    verified: VerifiedStudy
    who: str = "col"

    def say(self, kind: Any, **body: Any) -> None:
        """Append an entry."""
        self.writer.append(kind, body, f"{self.who}@example.org")

    def start(self, **more: Any) -> None:
        told = {"workers": 1, "network": "not-cut", "network_reason": "a test"}
        self.say(
            "collection-started",
            **{"seal": self.verified.seal, "attempt": 1, "environments": ENVIRONMENTS, **told, **more},
        )

    def begin(self, unit: str, shard: int, attempt: int = 1) -> None:
        self.say("attempt", unit=unit, shard=shard, attempt=attempt)

    def store(
        self,
        unit: str,
        shard: int,
        attempt: int = 1,
        *,
        begin: bool = True,
        changes: dict[int, Again] | None = None,
    ) -> None:
        """Store what `lines_of` says, begun just before, with these lines changed."""
        if begin:
            self.begin(unit, shard, attempt)
        paths, one = self.writer.paths, self.shard(unit, shard)
        lines = list(lines_of(self.verified.seal, one, attempt))
        for number, change in (changes or {}).items():
            lines[number] = change(lines[number])
        encoded = encode(lines)
        meta = dump_file(to_json(meta_of(self.verified, one, attempt, lines, encoded)))
        write_whole(paths.shard_records(unit, shard, attempt), encoded.data)
        write_whole(paths.shard_meta(unit, shard, attempt), meta)
        self.say(
            "shard-stored",
            **{"unit": unit, "shard": shard, "attempt": attempt, "draws": len(lines)},
            records_sha256=encoded.records_sha256,
            records_size=encoded.records_size,
            meta_sha256=digest(meta),
        )

    def again(self, unit: str, shard: int, attempt: int, k: int, changes: dict[int, Again]) -> None:
        """A second result comes, number `k`, with these lines changed."""
        lines = list(lines_of(self.verified.seal, self.shard(unit, shard), attempt))
        for number, change in changes.items():
            lines[number] = change(lines[number])
        encoded = encode(lines)
        if changes:
            write_whole(self.writer.paths.duplicate(unit, shard, attempt, k), encoded.data)
        self.say(
            "duplicate",
            **{"unit": unit, "shard": shard, "attempt": attempt},
            **{"lines": len(lines), "differing": len(changes)},
            records_sha256=encoded.records_sha256,
            records_size=encoded.records_size,
            lines_sha256=encoded.lines_sha256,
            lines_size=encoded.lines_size,
        )

    def fail(self, unit: str, attempt: int, cause: str) -> None:
        self.say("unit-invalid", unit=unit, attempt=attempt, reason="it broke", cause=cause)

    def end(self, *, complete: bool, invalid: Sequence[str] = ()) -> None:
        stored = sum(entry.type == "shard-stored" for entry in self.writer.entries)
        self.say(
            "collection-ended",
            **{"seal": self.verified.seal, "complete": complete, "stored": stored, "invalid": list(invalid)},
        )

    def shard(self, unit: str, index: int) -> Shard:
        study = self.verified.study
        return next(s for s in plan(study.protocol, study.seeds) if (s.unit.id, s.index) == (unit, index))


def lines_of(seal: str, shard: Shard, attempt: int) -> Lines:
    """The draws or leaves of the exact fixture, as of that attempt."""
    found: Lines = (
        leaves_of(seal, shard) if shard.channel == "exact" else exact_fixture.records_of(seal, shard)
    )
    return [dataclasses.replace(line, attempt=attempt) for line in found]


def encode(lines: Lines) -> Encoded:
    """Pack records or leaves."""
    leaves = [line for line in lines if isinstance(line, LeafRecord)]
    return encode_tree(leaves) if leaves else encode_shard([r for r in lines if isinstance(r, Record)])


def meta_of(verified: VerifiedStudy, shard: Shard, attempt: int, lines: Lines, encoded: Encoded) -> ShardMeta:
    """The meta of a stored shard."""
    leaves = [line for line in lines if isinstance(line, LeafRecord)]
    tree = tree_meta(leaves) if leaves else None
    study, seal = verified.manifest.study, verified.seal
    return shard_meta(study, seal, shard, encoded, len(lines), attempt=attempt, tree=tree)


def longer(record: Record) -> Record:
    """The same draw, as an engine returned it that stopped elsewhere."""
    return dataclasses.replace(record, outcome=Decoded(tokens=(0,), finish="eos"))


def moved(leaf: LeafRecord) -> LeafRecord:
    """The same leaf, of which the engine's stateful parts saw something else."""
    return dataclasses.replace(leaf, digest=digest(b"something else"))


def tell(teller: Teller) -> None:
    """The three runs."""
    teller.start()
    for shard in (0, 1):
        teller.store("drawn.same.off", shard)
    teller.store("drawn.same.on", 0)
    teller.begin("drawn.same.on", 1)
    teller.fail("drawn.same.on", 1, "engine")
    teller.start()
    for shard in (0, 1):
        teller.store("drawn.same.on", shard, 2)
    teller.again("drawn.same.on", 0, 2, 1, {})
    teller.again("drawn.same.on", 0, 2, 2, {3: longer, 4: longer, 150: longer})
    teller.store("walked.other.off", 0)
    teller.begin("walked.other.on", 0)
    teller.end(complete=False)
    teller.start()
    teller.begin("walked.other.on", 0)
    teller.fail("walked.other.on", 1, "request-ceiling")
    teller.store("walked.other.on", 0, 2)
    teller.again("walked.other.on", 0, 2, 1, {2: moved})
    teller.store("walked.same.off", 0)
    teller.begin("walked.same.on", 0)
    teller.fail("walked.same.on", 1, "unit-ceiling")
    teller.again("drawn.same.off", 1, 1, 1, {0: longer})
    teller.end(complete=True, invalid=["walked.same.on"])


def collect_third(paths: StudyPaths, story: Callable[[Teller], None] = tell) -> str:
    """Collect the sealed study without running anything; returns the commit."""
    verified = verify_study(paths, need="sealed")
    with LedgerWriter.open(paths) as writer:
        story(Teller(writer=writer, verified=verified))
    return sign_head_and_commit(
        paths,
        key=signing_key(paths, "col"),
        principal="col@example.org",
        message="Collect study tree",
        touched=[paths.records] if paths.records.exists() else [],
    )
