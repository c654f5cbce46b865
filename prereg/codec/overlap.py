"""Where seed blocks meet: at full width, and in the low 32 bits that engines keep (docs/formats.md, 6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

LOW_BITS = 32

Width = Literal[64, 32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A half-open interval of seeds, [first, end), that a block reserves or that records used."""

    study: str
    block: str
    first: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Seeds that two blocks have in common; at width 32, the common low 32 bits."""

    study_a: str
    block_a: str
    study_b: str
    block_b: str
    first: int
    end: int
    width: Width

    def __str__(self) -> str:
        how = "" if self.width == 64 else " in the low 32 bits"
        return (
            f"block {self.block_a} of study {self.study_a} and block {self.block_b} of study {self.study_b} "
            f"share the seeds [{self.first}, {self.end}){how}"
        )


def overlaps(spans: Iterable[Span], *, within: bool = False) -> list[Overlap]:
    """Every pair of blocks that share seeds, in the order of the interval they share.

    Blocks of one study are compared with each other only if `within`. A pair that meets at full width is not
    reported for its low bits again, and a block never overlaps itself, in however many spans it comes.
    """
    spans = [s for s in spans if s.first < s.end]
    found: dict[tuple[tuple[str, str], tuple[str, str]], Overlap] = {}
    for width, pieces in (
        (64, [(s.first, s.end, s) for s in spans]),
        (32, [(*piece, s) for s in spans for piece in folded(s.first, s.end)]),
    ):
        for a, b, first, end in _meetings(pieces):
            if a.study == b.study and (not within or a.block == b.block):
                continue
            a, b = sorted((a, b), key=_name)
            found.setdefault(
                (_name(a), _name(b)),
                Overlap(
                    study_a=a.study,
                    block_a=a.block,
                    study_b=b.study,
                    block_b=b.block,
                    first=first,
                    end=end,
                    width=64 if width == 64 else 32,
                ),
            )
    return sorted(found.values(), key=lambda o: (-o.width, o.first, o.end, o.study_a, o.block_a))


def folded(first: int, end: int, *, bits: int = LOW_BITS) -> list[tuple[int, int]]:
    """The low bits of the seeds in [first, end), as at most two half-open intervals."""
    size = 1 << bits
    if end - first >= size:
        return [(0, size)]
    low = first % size
    high = low + (end - first)
    return [(low, high)] if high <= size else [(low, size), (0, high - size)]


def _name(span: Span) -> tuple[str, str]:
    return (span.study, span.block)


def _meetings(pieces: list[tuple[int, int, Span]]) -> Iterator[tuple[Span, Span, int, int]]:
    """Every pair of pieces with a common part, by a sweep over their first seeds."""
    open_pieces: list[tuple[int, int, Span]] = []
    for first, end, span in sorted(pieces, key=lambda piece: piece[:2]):
        open_pieces = [piece for piece in open_pieces if piece[1] > first]
        for _, other_end, other in open_pieces:
            yield other, span, first, min(end, other_end)
        open_pieces.append((first, end, span))
