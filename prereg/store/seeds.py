"""The seeds that a repository's studies reserve, and those that their records used (docs/formats.md, 6).

Of another study as little is asked as can be: that its seeds can be told. What it says of itself is not
believed, and what is there but cannot be read is a fault, so that nobody passes by removing something.
"""

from __future__ import annotations

import re
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prereg.codec.canonical import loads
from prereg.codec.convert import read_machine
from prereg.codec.overlap import Overlap, Span, overlaps
from prereg.errors import EvidenceIncomplete, PreregError, VerificationFailed
from prereg.model.record import ShardMeta
from prereg.model.study import SeedBlock
from prereg.store.files import MAX_FILE, read_once
from prereg.store.layout import StudyPaths

_DECIMAL = re.compile(r"0|[1-9][0-9]{0,19}")
_SEED_OF_LINE = re.compile(rb'"seed":"(0|[1-9][0-9]{0,19})"')
"""Inside a string of a record every quotation mark has a backslash before it."""
_RECORDS, _META = ".jsonl.gz", ".meta.json"
_COPY = re.compile(r"\.duplicate-[1-9][0-9]*\Z")
"""How the name of a second result ends, which has the meta of the first (section 21)."""


def studies_in(folder: Path) -> list[StudyPaths]:
    """Every study in a `studies/` folder, by name; a link or a pipe in the place of its files counts too."""
    return [
        StudyPaths(root=root)
        for root in sorted(folder.iterdir())
        if root.is_dir() and any(_is_there(root / n) for n in ("seeds.json", "ledger.jsonl", "records"))
    ]


def reserved(paths: StudyPaths) -> list[Span]:
    """The blocks that a study reserves; none if it is a draft whose seeds.json is not understood.

    Raises PreregError, naming the file, if a study that is no draft has no seeds.json that is understood.
    """
    try:
        return _blocks(paths)
    except PreregError:
        if not is_draft(paths):
            raise
        return []


def described(paths: StudyPaths) -> list[tuple[Span, dict[str, Any]]]:
    """The blocks of a seeds.json that is understood, each with all that it says of itself.

    Raises PreregError, naming the file, for one that is not.
    """
    file = paths.root / "seeds.json"
    where = str(file)
    remedy = f"git checkout -- {file}"
    try:
        value = loads(read_once(file), where=where)
    except EvidenceIncomplete as error:
        raise EvidenceIncomplete(error.what, where=where, next_step=remedy) from None
    except PreregError as error:
        raise VerificationFailed(f"is not understood: {error.what}", where=where, next_step=remedy) from None
    blocks = value.get("blocks") if isinstance(value, dict) else None
    if not isinstance(blocks, list) or not blocks:
        raise VerificationFailed("is not understood: it has no blocks", where=where, next_step=remedy)
    found: dict[str, tuple[Span, dict[str, Any]]] = {}
    for i, block in enumerate(blocks):
        first, end = (_whole(block.get(k)) if isinstance(block, dict) else None for k in ("first", "end"))
        if first is None or end is None or not 0 <= first < end <= 2**64:
            what = f"is not understood: block {i} is no interval of seeds"
            raise VerificationFailed(what, where=where, next_step=remedy)
        name = block.get("id")
        if not isinstance(name, str) or name in found:
            name = f"#{i}"
        found[name] = (Span(study=paths.name, block=name, first=first, end=end), block)
    return list(found.values())


def not_understood(studies: Path) -> list[str]:
    """The drafts whose seeds.json is not understood: they reserve nothing."""
    found = []
    for paths in studies_in(studies):
        if is_draft(paths):
            try:
                _blocks(paths)
            except PreregError:
                found.append(paths.name)
    return found


def span_of(study: str, block: SeedBlock) -> Span:
    """A reserved block as an interval."""
    return Span(study=study, block=block.id, first=block.start, end=block.stop)


def used(paths: StudyPaths) -> Iterator[Span]:
    """The seeds that the records of a study used, by its metas and lines, whatever its seeds.json says now.

    Seeds that several attempts of a unit used, or several results of a shard, are used once. Raises
    PreregError, naming the file, for a record file that cannot be read.
    """
    if _is_there(paths.records):
        yield from dict.fromkeys(_used(paths))


def _used(paths: StudyPaths) -> Iterator[Span]:
    for folder in _folders(paths.records):
        names = _names(folder)
        for name in names:
            file = folder / name
            if name.endswith(_META):
                yield _of_meta(paths.name, file)
            elif name.endswith(_RECORDS):
                beside = folder / (_COPY.sub("", name.removesuffix(_RECORDS)) + _META)
                if beside.name in names:
                    said, leaves = _with_tree(paths.name, beside)
                elif name.removesuffix(_RECORDS) != beside.name.removesuffix(_META):
                    # A second result may wait for the first, with which its meta comes: its draws tell.
                    said, leaves = (
                        Span(study=paths.name, block=f"records/{folder.name}", first=0, end=0),
                        False,
                    )
                else:
                    raise EvidenceIncomplete("has no meta: its seeds are unknown", where=str(file))
                yield from _of_lines(file, said, leaves)
            elif not stat.S_ISREG(file.lstat().st_mode):
                raise VerificationFailed("is not a regular file", where=str(file))


def repository_spans(studies: Path, *, without: str | None = None) -> list[Span]:
    """Reserved and used seeds of every study in `studies`, but for the study in the folder `without`."""
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


def _is_there(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # it cannot even be looked at: whoever reads it next says so
    return True


def is_draft(paths: StudyPaths) -> bool:
    """Whether a study is neither sealed nor has records."""
    return not _is_there(paths.ledger) and not _is_there(paths.records)


def _blocks(paths: StudyPaths) -> list[Span]:
    return [span for span, _ in described(paths)]


def _whole(value: object) -> int | None:
    if isinstance(value, str):
        return int(value) if _DECIMAL.fullmatch(value) else None
    return value if type(value) is int else None


def _names(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise VerificationFailed(f"cannot be read: {error.strerror}", where=str(folder)) from None


def _folders(records: Path) -> Iterator[Path]:
    """The units' folders; neither `records` nor one of them may be anything but a folder."""
    for folder in (records, *(records / name for name in (_names(records) if _is_folder(records) else ()))):
        if not _is_folder(folder):
            raise VerificationFailed("is no folder", where=str(folder))
        if folder != records:
            yield folder


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _of_meta(study: str, file: Path) -> Span:
    return _with_tree(study, file)[0]


def _with_tree(study: str, file: Path) -> tuple[Span, bool]:
    """The seeds that a meta says were used, and whether its lines are leaves, which name no seed."""
    meta = read_machine(read_once(file), "shard-meta", ShardMeta, where=str(file))
    first = int(meta.first_seed)
    said = Span(study=study, block=f"records/{meta.unit}", first=first, end=first + meta.requests)
    return said, meta.tree is not None


def _of_lines(file: Path, said: Span, leaves: bool) -> Iterator[Span]:
    """The seeds of a shard's lines that are not those its meta says, as intervals."""
    unpacker = zlib.decompressobj(31)
    try:
        lines = unpacker.decompress(read_once(file), MAX_FILE + 1)
    except zlib.error as error:
        raise VerificationFailed(f"is not gzip: {error}", where=str(file)) from None
    if not unpacker.eof or unpacker.unused_data or len(lines) > MAX_FILE:
        what = f"is not one whole gzip member of at most {MAX_FILE} bytes"
        raise VerificationFailed(what, where=str(file))
    found = _SEED_OF_LINE.findall(lines)
    ended = lines.endswith(b"\n") or (leaves and not lines)
    if len(found) != (0 if leaves else lines.count(b"\n")) or not ended:
        raise VerificationFailed("its lines do not each have one seed", where=str(file))
    first = end = -1
    for seed in sorted({int(text) for text in set(found)}):
        if said.first <= seed < said.end:
            continue
        if seed != end:
            if first >= 0:
                yield Span(study=said.study, block=said.block, first=first, end=end)
            first = seed
        end = seed + 1
    if first >= 0:
        yield Span(study=said.study, block=said.block, first=first, end=end)
