"""The lines of a shard as one gzip member of a fixed form, and back (docs/formats.md section 7)."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Protocol

from prereg.codec.canonical import digest
from prereg.errors import VerificationFailed
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


class Told(Protocol):
    """What is told of a shard's lines beforehand: by its meta, or by a ledger entry."""

    @property
    def lines_sha256(self) -> str: ...

    @property
    def lines_size(self) -> int: ...


def unpack(gz: bytes, told: Told, where: str, *, by: str = "its meta") -> bytes:
    """Decompress at most what is told, from one gzip member of the fixed form. Raises BadShard.

    `by` is who told it, for the message.
    """
    if told.lines_size > MAX_FILE:
        raise BadShard(f"claims {told.lines_size} bytes of lines; {MAX_FILE} are allowed", where=where)
    lines, rest = _member(gz, told.lines_size, where)
    if lines is None or len(lines) != told.lines_size:
        raise BadShard(f"does not hold the {told.lines_size} bytes that {by} says", where=where)
    if rest:
        raise BadShard("has bytes after its one gzip member", where=where)
    if digest(lines) != told.lines_sha256:
        raise BadShard(f"its lines have another digest than {by} says", where=where)
    return lines


def unpack_untold(gz: bytes, where: str) -> bytes:
    """Decompress one gzip member of the fixed form of which nothing is told. Raises BadShard."""
    lines, rest = _member(gz, MAX_FILE, where)
    if lines is None or len(lines) > MAX_FILE or rest:
        raise BadShard(f"is not one whole gzip member of at most {MAX_FILE} bytes", where=where)
    return lines


def _member(gz: bytes, size: int, where: str) -> tuple[bytes | None, bytes]:
    """The lines, up to one byte more than `size` and None if they do not end there, and what follows them."""
    if not gz.startswith(_GZIP_HEAD):
        raise BadShard("is not gzip with mtime 0 and no name", where=where)
    unpacker = zlib.decompressobj(31)
    try:
        lines = unpacker.decompress(gz, size + 1)
    except zlib.error as error:
        raise BadShard(f"is not gzip: {error}", where=where) from None
    return (lines if unpacker.eof else None), unpacker.unused_data
