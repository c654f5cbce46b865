"""How a second result of a shard compares with the stored one (docs/formats.md section 21)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from prereg.codec.canonical import digest
from prereg.seal.duplicates import differing_lines
from prereg.seal.packing import unpack_untold


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What a `duplicate` entry tells of a second result."""

    records_sha256: str
    records_size: int
    lines_sha256: str
    lines_size: int
    lines: int
    differing: int
    """Draws or leaves that only one of the two has, or of which the lines are not the same bytes."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def compare(first: bytes, second: bytes, *, where: str) -> Compared:
    """Hold a second result against the first, both as they are stored, and whole.

    Raises BadShard for what is no gzip member.
    """
    lines = unpack_untold(second, where)
    return Compared(
        records_sha256=digest(second),
        records_size=len(second),
        lines_sha256=digest(lines),
        lines_size=len(lines),
        lines=len(lines.splitlines()),
        differing=differing_lines(unpack_untold(first, where), lines),
    )
