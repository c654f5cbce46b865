"""What lies in a study's folder, seen without following a link, and where it may lie."""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from prereg.store.layout import UNSEALED_FILES, UNSEALED_FOLDERS, StudyPaths

_ID = r"[a-z0-9][a-z0-9_-]{0,63}"
_UNIT = rf"{_ID}\.{_ID}\.{_ID}"
_ATTEMPT = r"\.attempt-[2-9]"
_COPY = r"\.duplicate-[1-9][0-9]{0,8}"
_SEQ = r"[1-9][0-9]{0,15}"
_PRINCIPAL = r"[A-Za-z0-9][A-Za-z0-9@._+-]{0,127}"
_KNOWN = re.compile(
    rf"""ledger\.jsonl | ledger\.head\.json | ledger\.head\.json\.sig
    | seal/(?:lineage/[0-9a-f]{{64}}/)?
      (?:manifest\.json|manifest\.json\.sig|SHA256SUMS|timestamp\.ts[qr]|cosign/{_PRINCIPAL}\.sig)
    | records/{_UNIT}(?:{_ATTEMPT})?/[0-9]{{5}}(?:\.meta\.json|(?:{_COPY})?\.jsonl\.gz)
    | stamps/{_SEQ}/(?:ledger\.head\.json|ledger\.head\.json\.sig|timestamp\.ts[qr])
    | analysis/decisions\.json | audit/report\.json | audit/report\.json\.sig""",
    re.VERBOSE,
)
_KNOWN_FOLDER = re.compile(
    rf"seal(?:/lineage(?:/[0-9a-f]{{64}})?)?|seal(?:/lineage/[0-9a-f]{{64}})?/cosign"
    rf"|stamps(?:/{_SEQ})?|analysis|audit|records(?:/{_UNIT}(?:{_ATTEMPT})?)?"
)
_SHARD = re.compile(
    r"records/([^/]+?)(?:\.attempt-([2-9]))?/([0-9]{5})(?:\.duplicate-([1-9][0-9]{0,8}))?\.(jsonl\.gz|meta\.json)"
)
MAX_DEPTH = 64
"""Folders within folders that are looked into; a study has a handful."""
_PARTIAL = re.compile(r"((?:.*/)?)\.([^/]+)\.[0-9]+\.partial", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A study's folder; every path is relative to it. `report/` is not looked into."""

    files: tuple[str, ...]
    folders: tuple[str, ...]
    odd: dict[str, str]
    """What is neither a regular file nor a folder, or has no proper name, and what it is."""

    def sealable(self) -> tuple[str, ...]:
        """The files that a manifest covers."""
        return tuple(p for p in self.files if not is_unsealed(p))


def walk(paths: StudyPaths) -> Tree:
    """List the folder. A link is listed as what it is, wherever it leads."""
    files: list[str] = []
    folders: list[str] = []
    odd: dict[str, str] = {}
    for name, mode in _entries(paths.root):
        if (fault := _name_fault(name)) is not None:
            odd[ascii(name)] = fault
        elif stat.S_ISREG(mode):
            files.append(name)
        elif stat.S_ISDIR(mode):
            folders.append(name)
        else:
            odd[name] = "a link" if stat.S_ISLNK(mode) else "neither a file nor a folder"
    return Tree(files=tuple(sorted(files)), folders=tuple(sorted(folders)), odd=odd)


def _name_fault(name: str) -> str | None:
    """Why no proper name is shown as it stands: it may rewrite the reader's screen, or hide in the depth."""
    if any("\ud800" <= ch <= "\udfff" for ch in name):
        return "a name that is not UTF-8"
    if any(unicodedata.category(ch) == "Cc" for ch in name):
        return "a name with control characters"
    return f"more than {MAX_DEPTH} folders deep" if name.count("/") >= MAX_DEPTH else None


def _entries(root: Path) -> Iterator[tuple[str, int]]:
    """Every entry below `root` but those of `report/`; what lies too deep is named and not entered."""
    waiting = [""]
    while waiting:
        below = waiting.pop()
        with os.scandir(root / below) as found:
            for entry in found:
                name = f"{below}/{entry.name}" if below else entry.name
                mode = entry.stat(follow_symlinks=False).st_mode
                if name == "report" and stat.S_ISDIR(mode):
                    continue
                yield name, mode
                if stat.S_ISDIR(mode) and name.count("/") < MAX_DEPTH:
                    waiting.append(name)


def is_unsealed(path: str) -> bool:
    """Whether the manifest leaves this path out."""
    return path in UNSEALED_FILES or path.split("/", 1)[0] in UNSEALED_FOLDERS


def is_known(path: str) -> bool:
    """Whether a file may lie at this unsealed place."""
    return _KNOWN.fullmatch(path) is not None


def is_known_folder(path: str) -> bool:
    """Whether a folder may lie at this unsealed place."""
    return _KNOWN_FOLDER.fullmatch(path) is not None


class ShardFile(NamedTuple):
    """Which file of records a path names; the first three say of which shard in which attempt."""

    unit: str
    attempt: int
    shard: int
    kind: Literal["jsonl.gz", "meta.json", "duplicate"]
    copy: int = 0
    """Which duplicate it is, from 1; 0 for the stored files."""


def shard_at(path: str) -> ShardFile | None:
    """What a path below records/ names, or None."""
    match = _SHARD.fullmatch(path)
    if match is None or (match[4] and match[5] == "meta.json"):
        return None
    unit, attempt, shard = match[1], int(match[2] or 1), int(match[3])
    if match[4]:
        return ShardFile(unit, attempt, shard, "duplicate", int(match[4]))
    return ShardFile(unit, attempt, shard, "meta.json" if match[5] == "meta.json" else "jsonl.gz")


def partial_of(path: str) -> str | None:
    """The known place that a temporary file was to be renamed to, or None if it is no such file."""
    match = _PARTIAL.fullmatch(path)
    target = None if match is None else match[1] + match[2]
    return target if target is not None and is_known(target) else None


def leftovers(paths: StudyPaths) -> list[Path]:
    """Temporary files that a killed verb left at known places; `collect` removes them."""
    return [paths.root / name for name in walk(paths).files if partial_of(name)]
