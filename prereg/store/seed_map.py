"""The seeds of every study of a repository, told for people: what is reserved for what, and what was used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prereg.codec.overlap import folded
from prereg.errors import PreregError
from prereg.store.seeds import described, is_draft, studies_in, used


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A half-open interval of seeds that a study reserves."""

    id: str
    role: str
    unit: str
    """Role and unit are what seeds.json says, `-` where it says nothing."""
    first: int
    end: int
    used: int
    """How many of its seeds the study's records used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySeeds:
    """What one study reserves and used."""

    study: str
    draft: bool
    understood: bool
    """False for a draft whose seeds.json is not understood: it reserves nothing."""
    blocks: tuple[Block, ...]
    used: tuple[tuple[int, int], ...]
    """The seeds of its records, as disjoint half-open intervals in order."""


def seed_map(studies: Path) -> list[StudySeeds]:
    """Every study in a `studies/` folder, by name.

    Raises PreregError, naming the file, for seeds of a study that is no draft which cannot be told.
    """
    found: list[StudySeeds] = []
    for paths in studies_in(studies):
        taken = union((span.first, span.end) for span in used(paths))
        try:
            told, understood = described(paths), True
        except PreregError:
            if not is_draft(paths):
                raise
            told, understood = [], False
        blocks = (
            Block(
                id=span.block,
                role=_word(raw, "role"),
                unit=_word(raw, "unit"),
                first=span.first,
                end=span.end,
                used=_within(taken, span.first, span.end),
            )
            for span, raw in told
        )
        found.append(
            StudySeeds(
                study=paths.name,
                draft=is_draft(paths),
                understood=understood,
                blocks=tuple(sorted(blocks, key=lambda b: (b.first, b.end))),
                used=tuple(taken),
            )
        )
    return found


def union(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same numbers as disjoint half-open intervals, in order; those that touch become one."""
    found: list[tuple[int, int]] = []
    for first, end in sorted(intervals):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        elif first < end:
            found.append((first, end))
    return found


def low(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The low 32 bits of the numbers in these intervals, as disjoint half-open intervals in order."""
    return union(piece for first, end in intervals for piece in folded(first, end))


def _within(taken: list[tuple[int, int]], first: int, end: int) -> int:
    return sum(max(0, min(end, b) - max(first, a)) for a, b in taken)


def _word(raw: dict[str, Any], name: str) -> str:
    value = raw.get(name)
    return value if isinstance(value, str) else "-"
