"""The lines of a shard as one gzip member of a fixed form, and back (docs/formats.md section 7)."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from prereg.codec.canonical import digest
from prereg.errors import VerificationFailed
from prereg.model.record import ShardMeta
from prereg.store.files import MAX_FILE

_GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00"
"""Magic, deflate, no name or other field, mtime 0."""


class BadShard(VerificationFailed):
    """A shard's bytes, meta or records are not what the plan and the ledger say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """A shard as bytes, with what its meta says of them."""

    data: bytes
    """The `.gz` bytes."""
    records_sha256: str
    records_size: int
    lines_sha256: str
    lines_size: int


def pack(lines: bytes) -> Encoded:
    """Compress a shard's lines; the same lines give the same bytes. Raises BadShard if they are too many."""
    if len(lines) > MAX_FILE:
        raise BadShard(f"a shard of {len(lines)} bytes is too large", next_step="lower shard_requests")
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    data = packer.compress(lines) + packer.flush()
    # The last byte of the header names the operating system; 255 is "unknown", the same everywhere.
    data = data[:9] + b"\xff" + data[10:]
    return Encoded(
        data=data,
        records_sha256=digest(data),
        records_size=len(data),
        lines_sha256=digest(lines),
        lines_size=len(lines),
    )


def unpack(gz: bytes, meta: ShardMeta, where: str) -> bytes:
    """Decompress at most what the meta says, from one gzip member of the fixed form. Raises BadShard."""
    if meta.lines_size > MAX_FILE:
        raise BadShard(f"claims {meta.lines_size} bytes of lines; {MAX_FILE} are allowed", where=where)
    if not gz.startswith(_GZIP_HEAD):
        raise BadShard("is not gzip with mtime 0 and no name", where=where)
    unpacker = zlib.decompressobj(31)
    try:
        lines = unpacker.decompress(gz, meta.lines_size + 1)
    except zlib.error as error:
        raise BadShard(f"is not gzip: {error}", where=where) from None
    if len(lines) != meta.lines_size or not unpacker.eof:
        raise BadShard(f"does not hold the {meta.lines_size} bytes that its meta says", where=where)
    if unpacker.unused_data:
        raise BadShard("has bytes after its one gzip member", where=where)
    if digest(lines) != meta.lines_sha256:
        raise BadShard("its lines have another digest than its meta says", where=where)
    return lines
