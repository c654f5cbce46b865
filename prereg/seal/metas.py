"""The meta of a shard, and its two files against the ledger (docs/formats.md section 7)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from prereg.codec.canonical import digest
from prereg.codec.convert import read_machine
from prereg.model.plan import Shard
from prereg.model.record import ShardMeta
from prereg.seal.packing import BadShard
from prereg.store.ledger import parse_time


def read_meta(data: bytes, *, where: str) -> ShardMeta:
    """Parse a shard's meta. Raises a codec error, or BadShard for a time that no calendar has."""
    meta = read_machine(data, "shard-meta", ShardMeta, where=where)
    for name, text in (("started", meta.started), ("ended", meta.ended)):
        try:
            parse_time(text)
        except ValueError as error:
            raise BadShard(f"no such time: {error}", where=f"{where}#/{name}") from None
    return meta


def check_meta(
    meta: ShardMeta,
    shard: Shard,
    *,
    study: str,
    seal: str,
    environment: str | None,
    where: str,
    attempt: int = 1,
) -> None:
    """Check every planned field of a meta. Raises BadShard that names the first that differs."""
    expected: dict[str, object] = {
        "study": study,
        "seal": seal,
        "unit": shard.unit.id,
        "shard": shard.index,
        "attempt": attempt,
        "first_seed": str(shard.first_seed),
        "requests": shard.requests,
        "rows": shard.rows,
        "environment": environment,
    }
    if shard.channel == "draws":
        expected["draws"] = shard.draws
    if (meta.tree is None) != (shard.channel == "draws"):
        what = "is missing, and the unit is exact" if meta.tree is None else "is there, and the unit is draws"
        raise BadShard(what, where=f"{where}#/tree")
    for name, value in expected.items():
        found = getattr(meta, name)
        if found != value:
            raise BadShard(f"is {found!r:.80}; the plan says {value!r:.80}", where=f"{where}#/{name}")


def check_times(meta: ShardMeta, sealed: datetime, *, where: str) -> None:
    """Check that a shard was drawn after its seal was entered, at `sealed`, and in a time that goes forward.

    Raises BadShard.
    """
    started = parse_time(meta.started)
    if parse_time(meta.ended) < started:
        raise BadShard(f"is before its start, {meta.started}", where=f"{where}#/ended")
    if started < sealed:
        raise BadShard(
            f"is before the ledger's entry of the seal, {sealed.isoformat()}", where=f"{where}#/started"
        )


def check_stored(
    gz: bytes, meta_bytes: bytes, meta: ShardMeta, body: Mapping[str, Any], *, where: str, meta_where: str
) -> None:
    """Check a shard's two files against its `shard-stored` entry and each other. Raises BadShard."""
    if digest(meta_bytes) != body["meta_sha256"]:
        raise BadShard("its digest is not the ledger's meta_sha256", where=meta_where)
    found = digest(gz)
    if found != body["records_sha256"] or len(gz) != body["records_size"]:
        raise BadShard("its digest or size is not the ledger's", where=where)
    if found != meta.records_sha256 or len(gz) != meta.records_size:
        raise BadShard("its digest or size is not its meta's", where=where)
    if body["draws"] != meta.draws:
        raise BadShard("has another number of draws than the ledger says", where=meta_where)
