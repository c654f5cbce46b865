"""Step 7, section 21: the second results of a shard, each held against the first and its ledger entry.

What an earlier attempt stored and the attempt that counts stored too is one of them, without an entry.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import BytesIO
from itertools import zip_longest
from typing import Any

from audits.attempts import Copy, Key, stem_of
from audits.fault import Fault
from audits.ledger import Ledger
from audits.load import LARGE, Folder, inflate, sha256

Json = dict[str, Any]
Whole = Callable[[bytes, str], None]
"""Authenticates lines in the place of the stored ones, by the file they come from; raises if they are not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The result of a shard that counts."""

    key: Key
    body: Json
    """Its ``shard-stored`` entry's."""
    meta: Json
    lines: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A shard that an earlier attempt stored, and the attempt that counts too."""

    earlier: Key
    counts: Key
    lines: int
    """Of the longer one."""
    differing: int
    """The lines that only one has, or that differ in more than ``attempt``."""


def file_of(key: Key, number: int) -> str:
    """Where the second result is kept that the entry of this number, from 1, tells of."""
    return f"{stem_of(key)}.duplicate-{number}.jsonl.gz"


def kept(ledger: Ledger) -> set[str]:
    """The file of every second result that is kept: those that differ."""
    return {
        file_of(key, number)
        for key, copies in ledger.attempts.copies.items()
        for number, copy in enumerate(copies, 1)
        if copy.body["differing"]
    }


def differing(one: bytes, other: bytes) -> int:
    """The lines that only one of two results has, or that are not the same bytes.

    In both, line number n is draw or leaf n of the shard: so says what authenticated them.
    """
    if one == other:
        return 0
    return sum(a != b for a, b in zip_longest(BytesIO(one), BytesIO(other)))


def grouped(keys: Iterable[Key]) -> list[list[Key]]:
    """The results of each shard of a unit, by attempt, so that no more than two are in memory at a time."""
    groups: dict[tuple[str, int], list[Key]] = {}
    for key in keys:
        groups.setdefault((key[0], key[2]), []).append(key)
    return [sorted(group) for group in groups.values()]


def marks(key: Key, lines: bytes) -> list[bytes]:
    """A digest of each line but for its attempt, which a canonical line begins with.

    A file is read once: this is what is kept of an earlier attempt's until the one that counts is read.
    """
    head = b'{"attempt":%d,' % key[1]
    return [hashlib.sha256(line.removeprefix(head)).digest() for line in BytesIO(lines)]


def pair_of(earlier: Key, old: list[bytes], counts: Key, new: list[bytes]) -> Pair:
    """Hold what an earlier attempt stored against what counts, by the marks of their lines."""
    differ = sum(a != b for a, b in zip_longest(old, new))
    return Pair(earlier=earlier, counts=counts, lines=max(len(old), len(new)), differing=differ)


def counted(ledger: Ledger, unit: str, pairs: list[Pair]) -> dict[str, int]:
    """How often a unit's shards were drawn again, of every attempt, and how much of that differs."""
    own = [pair.differing for pair in pairs if pair.counts[0] == unit]
    entries = ledger.attempts.told(unit)
    return {"copies": entries["copies"] + len(own), "differing": entries["differing"] + sum(own)}


def check_copies(folder: Folder, ledger: Ledger, stored: Stored, whole: Whole) -> int:
    """Check every second result of an authenticated shard; raises at the first that is not as told.

    Returns how many there are.
    """
    copies = ledger.attempts.copies.get(stored.key, ())
    for number, copy in enumerate(copies, 1):
        body, place = copy.body, copy.place
        same = body["lines_sha256"] == stored.meta["lines_sha256"]
        if same != (body["differing"] == 0):
            what = f"is {body['differing']}, and its lines {'are' if same else 'are not'} the stored ones"
            raise Fault(what, file=place, pointer="/body/differing")
        if same:
            told = {"lines_size": stored.meta["lines_size"], "lines": stored.meta["draws"]}
            if body["records_sha256"] == stored.body["records_sha256"]:
                told["records_size"] = stored.body["records_size"]
            for key, value in told.items():
                if body[key] != value:
                    what = f"is {body[key]}, and of the same bytes the stored shard has {value}"
                    raise Fault(what, file=place, pointer=f"/body/{key}")
        else:
            _check_copy(folder, stored, copy, file_of(stored.key, number), whole)
    return len(copies)


def _check_copy(folder: Folder, stored: Stored, copy: Copy, file: str, whole: Whole) -> None:
    body, place = copy.body, copy.place
    read = folder.read(file, min(LARGE, body["records_size"]), keep=False)
    for key, value in (("records_sha256", read.digest), ("records_size", len(read.data))):
        if value != body[key]:
            raise Fault(f"its bytes are not those of {place} ({key})", file=file)
    try:
        lines = inflate(read.data, body["lines_size"])
    except Fault as fault:
        raise fault.at(file) from None
    if sha256(lines) != body["lines_sha256"]:
        raise Fault("is not that of the second result's lines", file=place, pointer="/body/lines_sha256")
    whole(lines, file)
    counted = {"lines": lines.count(b"\n"), "differing": differing(stored.lines, lines)}
    for key, count in counted.items():
        if body[key] != count:
            raise Fault(f"is {body[key]}, counted as {count}", file=place, pointer=f"/body/{key}")


def told(ledger: Ledger, pairs: list[Pair]) -> list[str]:
    """What a reviewer is told of the second results that differ, with an entry and without."""
    entries = [
        f"{copy.place}: {stem_of(key)}, {copy.body['differing']} of {copy.body['lines']} lines"
        for key, copies in ledger.attempts.copies.items()
        for copy in copies
        if copy.body["differing"]
    ]
    return entries + [
        f"{stem_of(pair.earlier)} and {stem_of(pair.counts)}, {pair.differing} of {pair.lines} lines"
        for pair in pairs
        if pair.differing
    ]
