"""The seeds that a repository's studies reserve, and those that their records used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from prereg.codec.convert import read_authored, read_machine
from prereg.codec.overlap import Overlap, Span, overlaps
from prereg.errors import EvidenceIncomplete, PreregError
from prereg.model.record import ShardMeta
from prereg.model.study import SeedBlock, Seeds
from prereg.store.files import read_once
from prereg.store.layout import StudyPaths


def studies_in(folder: Path) -> list[StudyPaths]:
    """Every study in a `studies/` folder, by name."""
    return [
        StudyPaths(root=root)
        for root in sorted(folder.iterdir())
        if root.is_dir() and any((root / n).exists() for n in ("seeds.json", "ledger.jsonl", "records"))
    ]


def reserved(paths: StudyPaths) -> list[Span]:
    """The blocks that a study reserves. Raises PreregError if its seeds.json cannot be read.

    A draft whose seeds.json is not yet filled in reserves nothing; a study with a ledger or records must have
    a readable one.
    """
    file = paths.root / "seeds.json"
    try:
        seeds = read_authored(read_once(file), "seeds", Seeds, where=str(file))
    except PreregError:
        if paths.ledger.exists() or paths.records.exists():
            raise
        return []
    return [span_of(paths.name, block) for block in seeds.blocks]


def span_of(study: str, block: SeedBlock) -> Span:
    """A reserved block as an interval."""
    return Span(study=study, block=block.id, first=block.start, end=block.stop)


def used(paths: StudyPaths) -> Iterator[Span]:
    """The seeds that the records of a study used, by its shards' metas, whatever its seeds.json says now."""
    if not paths.records.is_dir():
        return
    for shard in sorted(paths.records.glob("*/*.jsonl.gz")):
        meta_file = shard.with_name(shard.name.replace(".jsonl.gz", ".meta.json"))
        if not meta_file.exists():
            raise EvidenceIncomplete("has no meta: its seeds are unknown", where=str(shard))
    for file in sorted(paths.records.glob("*/*.meta.json")):
        meta = read_machine(read_once(file), "shard-meta", ShardMeta, where=str(file))
        first = int(meta.first_seed)
        yield Span(study=paths.name, block=f"records/{meta.unit}", first=first, end=first + meta.requests)


def repository_spans(studies: Path, *, without: str | None = None) -> list[Span]:
    """Reserved and used seeds of every study in `studies`, but for the study named `without`."""
    spans: list[Span] = []
    for paths in studies_in(studies):
        if paths.name != without:
            spans += reserved(paths)
            spans += used(paths)
    return spans


def seeds_check(studies: Path) -> list[Overlap]:
    """Every overlap between the studies of a repository, and between the blocks that one study reserves."""
    spans: list[Span] = []
    own: list[Overlap] = []
    for paths in studies_in(studies):
        blocks = reserved(paths)
        own += overlaps(blocks, within=True)
        spans += blocks
        spans += used(paths)
    return [*own, *overlaps(spans)]
