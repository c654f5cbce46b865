"""From a worker's replies to a stored shard: checked, written whole, and only then in the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prereg.codec.canonical import digest, dump_file
from prereg.codec.convert import to_json
from prereg.collect.executors.base import Finished
from prereg.collect.replies import records_of
from prereg.collect.trees import tree_of
from prereg.model.law import Crashed
from prereg.model.plan import Shard
from prereg.model.record import LeafRecord, Network, Record, ShardMeta
from prereg.model.tree import TreeMeta
from prereg.seal.leaves import encode_tree
from prereg.seal.packing import Encoded
from prereg.seal.records import encode_shard
from prereg.store.files import sync_folder, write_whole
from prereg.store.layout import StudyPaths
from prereg.store.ledger import LedgerWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What every record and meta of a run has in common."""

    study: str
    seal: str
    network: Network
    environments: Mapping[str, str]
    """Fingerprint of each build's environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A shard that is ready to be written."""

    shard: Shard
    attempt: int
    encoded: Encoded
    meta: bytes
    body: dict[str, Any]
    """Of its ledger entry."""
    crashes: int
    """Draws or leaves whose outcome is a crash."""
    lines: int
    """Draws, or leaves of a tree."""


def prepare(finished: Finished, binding: Binding, *, drafter: bool) -> Prepared:
    """Check and encode a shard. Raises VerificationFailed for what is not what the plan asks for."""
    shard, attempt = finished.job.shard, finished.job.attempt
    records: Sequence[Record | LeafRecord]
    tree: TreeMeta | None = None
    if shard.channel == "exact":
        records, tree = tree_of(finished, seal=binding.seal, drafter=drafter)
        encoded = encode_tree(records)
    else:
        recorded = finished.job.opening.configuration.get("records") is not None
        records = draws = records_of(
            shard,
            finished.replies,
            seal=binding.seal,
            drafter=drafter,
            recorded=recorded,
            attempt=attempt,
        )
        encoded = encode_shard(draws)
    crashes = sum(isinstance(record.outcome, Crashed) for record in records)
    meta = dump_file(
        to_json(
            ShardMeta(
                study=binding.study,
                seal=binding.seal,
                unit=shard.unit.id,
                shard=shard.index,
                attempt=attempt,
                first_seed=str(shard.first_seed),
                requests=shard.requests,
                rows=shard.rows,
                draws=len(records),
                records_sha256=encoded.records_sha256,
                records_size=encoded.records_size,
                lines_sha256=encoded.lines_sha256,
                lines_size=encoded.lines_size,
                environment=binding.environments[finished.job.opening.build],
                network=binding.network,
                started=finished.started,
                ended=finished.ended,
                tree=tree,
            )
        )
    )
    body = {
        "unit": shard.unit.id,
        "shard": shard.index,
        "attempt": attempt,
        "records_sha256": encoded.records_sha256,
        "records_size": encoded.records_size,
        "meta_sha256": digest(meta),
        "draws": len(records),
    }
    return Prepared(
        shard=shard,
        attempt=attempt,
        encoded=encoded,
        meta=meta,
        body=body,
        crashes=crashes,
        lines=len(records),
    )


def store(paths: StudyPaths, ledger: LedgerWriter, prepared: Prepared, actor: str) -> None:
    """Write a shard and then its ledger line, without which it does not count. Raises OSError."""
    place = (prepared.shard.unit.id, prepared.shard.index, prepared.attempt)
    write_whole(paths.shard_records(*place), prepared.encoded.data)
    write_whole(paths.shard_meta(*place), prepared.meta)
    sync_folder(paths.records)
    sync_folder(paths.root)
    ledger.append("shard-stored", prepared.body, actor)
