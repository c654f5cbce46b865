"""Step 10: no seed is reserved or used twice, within the study and across every other one.

Engines truncate seeds, so intervals are compared at full width and again in their low 32 bits.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from audits.__main__ import is_shortage
from audits.fault import Fault, Found, reason
from audits.jsonc import parse
from audits.load import LARGE, LONGEST, read_regular
from audits.records import Records
from audits.study import Study

LOW = 1 << 32
WIDE = 1 << 64
_EVIDENCE = {"ledger.jsonl", "records"}
"""What a folder beside this one has once it is more than a draft."""


_AGAIN = re.compile(r"\.attempt-[2-9]\Z")
"""What the folder of a unit's later attempt has after the unit: its seeds are the unit's own, used once."""


@dataclass(frozen=True, slots=True)
class Other:
    """Another study of the repository."""

    path: Path
    draft: bool
    """It has neither a ledger nor records: whatever its seeds.json says may still change."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A half-open interval of seeds, and who holds it."""

    first: int
    end: int
    study: str
    holder: str
    """The block that reserves it or the unit that used it."""
    used: bool = False

    def __str__(self) -> str:
        verb = "used by" if self.used else "block"
        return f"{verb} {self.holder} of {self.study}"


def runs(seeds: Iterable[int]) -> list[tuple[int, int]]:
    """The half-open intervals that a set of seeds fills."""
    found: list[tuple[int, int]] = []
    for seed in sorted(set(seeds)):
        if found and found[-1][1] == seed:
            found[-1] = found[-1][0], seed + 1
        else:
            found.append((seed, seed + 1))
    return found


def low_pieces(first: int, end: int) -> list[tuple[int, int]]:
    """An interval in its low 32 bits: one piece, or two where it wraps."""
    if end - first >= LOW:
        return [(0, LOW)]
    start = first % LOW
    stop = start + end - first
    return [(start, stop)] if stop <= LOW else [(start, LOW), (0, stop - LOW)]


def overlap(a: Interval, b: Interval) -> tuple[int, int, str] | None:
    """The interval two share, and at which width; None if they share nothing."""
    first, end = max(a.first, b.first), min(a.end, b.end)
    if first < end:
        return first, end, "64 bits"
    for one in low_pieces(a.first, a.end):
        for other in low_pieces(b.first, b.end):
            first, end = max(one[0], other[0]), min(one[1], other[1])
            if first < end:
                return first, end, "their low 32 bits"
    return None


def _clash(a: Interval, b: Interval, found: Found) -> None:
    if (shared := overlap(a, b)) is not None:
        first, end, width = shared
        found.fault(f"{a} and {b} share [{first}, {end}) at {width}", file="seeds.json", pointer="/blocks")


def check_seeds(study: Study, records: Records | None, others: dict[str, Other], found: Found) -> None:
    """Compare this study's blocks and used seeds with each other and with every other study's."""
    blocks = [Interval(int(b["first"]), int(b["end"]), study.id, b["id"]) for b in study.blocks]
    found.applied += len(blocks)
    for i, block in enumerate(blocks):
        for other in blocks[:i]:
            _clash(other, block, found)
    mine = blocks + (used_here(study, records, found) if records is not None else [])
    void: list[str] = []
    for name, other_study in others.items():
        theirs = _held(other_study, name, void, found)
        found.applied += len(theirs)
        for one in mine:
            for their in theirs:
                # A block and its own use say the same thing: name it once.
                if not (one.used and not their.used and _covered(one, blocks, their)):
                    _clash(one, their, found)
    found.notes.append(f"{len(blocks)} blocks here; {len(others)} other studies")
    if void:
        found.notes.append(f"a draft that cannot be understood reserves nothing: {', '.join(void)}")


def _held(other: Other, name: str, void: list[str], found: Found) -> list[Interval]:
    """All that another study reserves or used; what cannot be read of it is a fault, or in a draft void."""
    theirs: list[Interval] = []
    try:
        theirs += reserved(other.path, name)
    except Fault as fault:
        if other.draft:
            void.append(f"{name} ({fault})")
        else:
            found.faults.append(Fault(fault.what, file=f"{name}/{fault.file}", pointer=fault.pointer))
    try:
        theirs += used(other.path, name)
    except Fault as fault:
        found.faults.append(Fault(fault.what, file=f"{name}/{fault.file}", pointer=fault.pointer))
    return theirs


def _covered(one: Interval, blocks: list[Interval], their: Interval) -> bool:
    return any(b.first <= one.first and one.end <= b.end and overlap(b, their) for b in blocks)


def used_here(study: Study, records: Records, found: Found) -> list[Interval]:
    """The seeds of this study's authenticated records."""
    everything: list[Interval] = []
    for unit, tally in records.tallies.items():
        merged: list[tuple[int, int]] = []
        for first, end in sorted(tally.seeds):
            if merged and merged[-1][1] >= first:
                if merged[-1][1] > first:
                    found.fault(f"seed {first} is used for two requests", file=f"records/{unit}")
                merged[-1] = merged[-1][0], max(end, merged[-1][1])
            else:
                merged.append((first, end))
        everything += [Interval(first, end, study.id, unit, True) for first, end in merged]
        found.applied += len(tally.seeds)
    return everything


def reserved(path: Path, name: str) -> list[Interval]:
    """The blocks another study reserves, read leniently: what matters is that nothing is overlooked."""
    return [Interval(first, end, name, holder) for _, first, end, holder in _blocks(path)]


def _blocks(path: Path) -> list[tuple[object, int, int, str]]:
    """The unit, first seed, end and name of each block that a study reserves."""
    try:
        value = parse(_bytes_of(path / "seeds.json"))
        found = []
        if not isinstance(value["blocks"], list) or not value["blocks"]:
            raise Fault("has no blocks", pointer="/blocks")
        for i, block in enumerate(value["blocks"]):
            first, end = _seed(block["first"]), _seed(block["end"], WIDE + 1)
            if end <= first:
                raise Fault("an empty block", pointer=f"/blocks/{i}")
            found.append((block.get("unit"), first, end, str(block.get("id", i))))
    except OSError as error:
        raise Fault(f"cannot be read: {reason(error)}", file="seeds.json") from None
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Fault("its blocks cannot be understood", file="seeds.json") from None
    except Fault as fault:
        raise fault.at("seeds.json") from None
    return found


def _bytes_of(path: Path) -> bytes:
    try:
        return read_regular(str(path), LARGE)[0]
    except FileNotFoundError:
        raise Fault("missing") from None


_DIGITS = re.compile(r"0|[1-9][0-9]{0,19}")
"""A seed has one spelling: zero, or digits that do not begin with it."""


def _seed(value: Any, below: int = WIDE) -> int:
    number = int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else value
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < below:
        raise ValueError(value)
    return number


def used(path: Path, name: str) -> Iterator[Interval]:
    """The seeds another study's record files hold, whoever signed them."""
    root = path / "records"
    if root.is_symlink() or (root.exists() and not root.is_dir()):
        raise Fault("not a folder", file="records")
    if not root.exists():
        return
    seeds: dict[str, set[int]] = {}
    walked: dict[str, str] = {}
    for folder, inner, names in os.walk(root, onerror=_unreadable):
        if len(here := os.path.relpath(folder, path)) > LONGEST:
            raise Fault(f"a path of more than {LONGEST} characters", file=f"{here[:80]}…")
        for name_ in inner:
            if (linked := Path(folder) / name_).is_symlink():
                raise Fault("a link", file=str(linked.relative_to(path)))
        for file in sorted(names):
            if file.endswith(".jsonl.gz"):
                where, unit = Path(folder) / file, _AGAIN.sub("", Path(folder).name)
                known, leaves = _seeds_of(where, str(where.relative_to(path)))
                seeds.setdefault(unit, set()).update(known)
                if leaves:
                    walked[unit] = str(where.relative_to(path))
    for unit, values in sorted(seeds.items()):
        for first, end in runs(values):
            yield Interval(first, end, name, unit, True)
    # Leaves hold no seeds: a unit of an exact stage used those of its block.
    for unit, file in sorted(walked.items()):
        block = next((one for one in _blocks(path) if one[0] == unit), None)
        if block is None:
            raise Fault(f"holds leaves of {unit}, which has no block", file=file)
        yield Interval(block[1], block[2], name, unit, True)


def _unreadable(error: OSError) -> None:
    raise Fault(f"cannot be read: {reason(error)}", file="records")


def _seeds_of(path: Path, file: str) -> tuple[set[int], bool]:
    """The seeds that the lines of a file hold, and whether any of them is a leaf of an exact stage."""
    try:
        member = zlib.decompressobj(wbits=31)
        lines = member.decompress(_bytes_of(path), LARGE)
        if not member.eof or member.unused_data:
            raise Fault("not one whole gzip member of acceptable size", file=file)
        values = [json.loads(line) for line in lines.split(b"\n") if line]
        leaves = [isinstance(v, dict) and v.keys() & {"choices", "seed"} == {"choices"} for v in values]
        seeds = {_seed(value["seed"]) for value, leaf in zip(values, leaves, strict=True) if not leaf}
        return seeds, any(leaves)
    except Fault as fault:
        raise fault.at(file) from None
    except OSError as error:
        raise Fault(f"cannot be read: {reason(error)}", file=file) from None
    except (zlib.error, KeyError, TypeError, ValueError, RecursionError) as error:
        if is_shortage(error):
            raise
        raise Fault("its records cannot be understood", file=file) from None


def find_others(here: Path, studies: Path) -> dict[str, Other]:
    """Every folder of ``studies`` that has seeds, a ledger or records, but this study's own folder."""
    others: dict[str, Other] = {}
    place = studies
    try:
        for place in sorted(path for path in studies.iterdir() if path.is_dir()):
            names = set(os.listdir(place))  # noqa: PTH208
            if place.resolve() != here.resolve() and names & {"seeds.json", *_EVIDENCE}:
                others[place.name] = Other(place, not names & _EVIDENCE)
    except OSError as error:
        raise Fault(f"cannot be read: {reason(error)}", file=str(place), then="see --studies") from None
    return others
