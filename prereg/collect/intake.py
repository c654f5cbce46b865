"""From a worker's replies to a stored shard: checked, written whole, and only then in the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from prereg.codec.canonical import digest, dump_file
from prereg.codec.convert import outcome_from, to_json
from prereg.collect.executors.base import Finished
from prereg.errors import VerificationFailed
from prereg.model.law import Crashed, Outcome
from prereg.model.plan import Shard
from prereg.model.record import Counters, Network, Record, ShardMeta
from prereg.model.seal import Entry
from prereg.seal.records import encode_shard, outcome_fault
from prereg.seal.verified import stored_shards
from prereg.store.files import sync_folder, write_whole
from prereg.store.folder import leftovers, shard_at, walk
from prereg.store.layout import StudyPaths
from prereg.store.ledger import LedgerWriter

_COUNTERS = {"proposals", "verifications", "accepted"}


class BadReply(VerificationFailed):
    """A worker's replies are not the draws that were asked for. Its unit is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What every record and meta of a run has in common."""

    study: str
    seal: str
    network: Network
    environments: Mapping[str, str]
    """Fingerprint of each build's environment."""


def records_of(shard: Shard, replies: list[Any], *, seal: str, drafter: bool) -> list[Record]:
    """The records of one shard from its raw replies.

    Raises BadReply if a seed is not echoed, a row is missing, or an outcome or a counter is not of its form;
    `drafter` says whether counters may be above 0.
    """
    if len(replies) != shard.requests:
        raise BadReply(f"{len(replies)} replies to {shard.requests} requests")
    known: dict[tuple[Any, ...], Outcome] = {}
    records: list[Record] = []
    unit, draw = shard.unit.id, shard.first_draw
    for number, reply in zip(shard.seeds(), replies, strict=True):
        seed = str(number)
        for row, (outcome, counters) in enumerate(_draws(reply, seed, shard.rows)):
            records.append(
                Record(
                    seal=seal,
                    unit=unit,
                    shard=shard.index,
                    attempt=1,
                    draw=draw,
                    seed=seed,
                    row=row,
                    outcome=_outcome(outcome, known, seed),
                    counters=_counters(counters, drafter, seed),
                )
            )
            draw += 1
    return records


def _draws(reply: Any, seed: str, rows: int) -> Iterable[tuple[Any, Any]]:
    if not isinstance(reply, dict) or reply.keys() != {"seed", "draws"}:
        raise BadReply(f"the reply to seed {seed} is not a request's result")
    if reply["seed"] != seed:
        raise BadReply(f"the request with seed {seed} was answered for seed {reply['seed']!r:.40}")
    draws = reply["draws"]
    if not isinstance(draws, list) or len(draws) != rows:
        count = len(draws) if isinstance(draws, list) else "no"
        raise BadReply(f"the request with seed {seed} returned {count} draws, not {rows}")
    for draw in draws:
        if not isinstance(draw, dict) or draw.keys() != {"outcome", "counters"}:
            raise BadReply(f"a draw of seed {seed} is no outcome with counters")
        yield draw["outcome"], draw["counters"]


def _outcome(value: Any, known: dict[tuple[Any, ...], Outcome], seed: str) -> Outcome:
    if fault := outcome_fault(value):
        raise BadReply(f"a draw of seed {seed}: {fault}")
    if "tokens" not in value:
        return outcome_from(value)
    # Tiny models return the same few outcomes over and over; each is built once.
    key = (*value["tokens"], value["finish"])
    outcome = known.get(key)
    if outcome is None:
        outcome = known[key] = outcome_from(value)
    return outcome


def _counters(value: Any, drafter: bool, seed: str) -> Counters:
    if not isinstance(value, dict) or value.keys() != _COUNTERS:
        raise BadReply(f"a draw of seed {seed} has no counters")
    if not all(type(n) is int and n >= 0 for n in value.values()):
        raise BadReply(f"a counter of seed {seed} is not a count")
    if not drafter and any(value.values()):
        raise BadReply(f"seed {seed} counts proposals in an arm without a drafter")
    return Counters(**value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A shard that is ready to be written."""

    shard: Shard
    data: bytes
    meta: bytes
    body: dict[str, Any]
    """Of its ledger entry."""
    crashes: int
    """Draws whose outcome is a crash."""


def prepare(finished: Finished, binding: Binding, *, drafter: bool) -> Prepared:
    """Check and encode a shard. Raises VerificationFailed for draws that are not what the plan asks for."""
    shard = finished.job.shard
    records = records_of(shard, finished.replies, seal=binding.seal, drafter=drafter)
    crashes = sum(isinstance(record.outcome, Crashed) for record in records)
    encoded = encode_shard(records)
    meta = dump_file(
        to_json(
            ShardMeta(
                study=binding.study,
                seal=binding.seal,
                unit=shard.unit.id,
                shard=shard.index,
                attempt=1,
                first_seed=str(shard.first_seed),
                requests=shard.requests,
                rows=shard.rows,
                draws=shard.draws,
                records_sha256=encoded.records_sha256,
                records_size=encoded.records_size,
                lines_sha256=encoded.lines_sha256,
                lines_size=encoded.lines_size,
                environment=binding.environments[finished.job.opening.build],
                network=binding.network,
                started=finished.started,
                ended=finished.ended,
            )
        )
    )
    body = {
        "unit": shard.unit.id,
        "shard": shard.index,
        "attempt": 1,
        "records_sha256": encoded.records_sha256,
        "records_size": encoded.records_size,
        "meta_sha256": digest(meta),
        "draws": shard.draws,
    }
    return Prepared(shard=shard, data=encoded.data, meta=meta, body=body, crashes=crashes)


def store(paths: StudyPaths, ledger: LedgerWriter, prepared: Prepared, actor: str) -> None:
    """Write a shard and then its ledger line, without which it does not count. Raises OSError."""
    shard = prepared.shard
    write_whole(paths.shard_records(shard.unit.id, shard.index), prepared.data)
    write_whole(paths.shard_meta(shard.unit.id, shard.index), prepared.meta)
    sync_folder(paths.records)
    sync_folder(paths.root)
    ledger.append("shard-stored", prepared.body, actor)


def discard_leftovers(paths: StudyPaths, entries: Iterable[Entry]) -> list[str]:
    """Remove what a killed run left, partial files and shards without a ledger line, and return their names.

    Anything else that does not belong stays, for the verification to refuse.
    """
    kept = stored_shards(tuple(entries))
    gone = leftovers(paths)
    for name in walk(paths).files:
        place = shard_at(name)
        if place is not None and place[:2] not in kept:
            gone.append(paths.root / name)
    for path in gone:
        path.unlink()
    for folder in {path.parent for path in gone if path.parent.parent == paths.records}:
        if not any(folder.iterdir()):
            folder.rmdir()
    return sorted(path.relative_to(paths.root).as_posix() for path in gone)
