"""Packages that come as source alone: compiled once, and kept outside the tree for all builds that need them.

A wheel's place is named by the digest of the source archive, the arguments of its compilation, and the Python
it is for. It is made under another name and renamed when it is whole, with a note of its digest, so that what
a killed compilation leaves is never taken for one.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from prereg.codec.canonical import dump_file, loads_machine, value_digest
from prereg.collect.installer import alone, run
from prereg.collect.progress import Progress
from prereg.errors import EngineFailed, PreregError, UsageError
from prereg.store.files import read_once, write_whole

NOTE = "wheel.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A package that a build compiles."""

    package: str
    """Its name in the lock, which has the version and the digest of its one archive."""
    cmake: tuple[str, ...]
    """Arguments of CMake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """What a lock says of one package."""

    entry: str
    version: str
    hashes: tuple[str, ...]
    """SHA-256, hex."""


def split_lock(lock: bytes, packages: Sequence[str]) -> tuple[bytes, dict[str, Pinned]]:
    """The lock without these packages, and what it said of each that it has."""
    rest: list[str] = []
    found: dict[str, Pinned] = {}
    for entry in _entries(lock.decode("utf-8", "replace")):
        head = re.match(r"([A-Za-z0-9._-]+)==([^\s;\\]+)", entry)
        if head is None or _plain(head[1]) not in {_plain(package) for package in packages}:
            rest.append(entry)
        else:
            hashes = re.findall(r"--hash=sha256:([0-9a-f]{64})", entry)
            found[_plain(head[1])] = Pinned(entry=entry, version=head[2], hashes=tuple(hashes))
    return "".join(rest).encode(), {p: found[_plain(p)] for p in packages if _plain(p) in found}


def _entries(text: str) -> Iterator[str]:
    """A lock's requirements, each with the indented lines that belong to it."""
    entry = ""
    for line in text.splitlines(keepends=True):
        if entry and not line[0].isspace():
            yield entry
            entry = ""
        entry += line
    if entry:
        yield entry


def _plain(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def check_sources(sources: Sequence[Source], lock: bytes, *, where: str) -> None:
    """Raise UsageError unless the lock pins each source package with the digest of exactly one archive."""
    _, pinned = split_lock(lock, [source.package for source in sources])
    for i, source in enumerate(sources):
        entry = pinned.get(source.package)
        if entry is None or len(entry.hashes) != 1:
            raise UsageError(
                f"the lock does not pin {source.package!r} to one archive", where=f"{where}#/compiled/{i}"
            )


def wheel_place(wheels: Path, source: Source, pinned: Pinned, machine: str) -> Path:
    """The folder of the wheel of a source package; `machine` names the Python that it is compiled for."""
    key = value_digest({"sdist": pinned.hashes[0], "cmake": list(source.cmake), "python": machine})
    return wheels / f"{_plain(source.package)}-{pinned.version}-{key[:16]}"


def known_wheel(place: Path) -> Path | None:
    """The whole wheel in that folder, or None."""
    note = place / NOTE
    if not note.is_file():
        return None
    try:
        value = loads_machine(read_once(note), where=str(note))
    except PreregError:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("wheel"), str):
        return None
    wheel = place / str(value["wheel"])
    if wheel.parent != place or not wheel.is_file():
        return None
    return wheel if _digest(wheel) == value.get("sha256") else None


def keep_wheel(wheel: Path, place: Path, source: Source) -> Path:
    """Note the digest of `wheel`, and give the folder that it is in the name `place`."""
    part = wheel.parent
    note = {"wheel": wheel.name, "sha256": _digest(wheel), "cmake": list(source.cmake)}
    write_whole(part / NOTE, dump_file(note))
    part.rename(place)
    return place / wheel.name


def compiled_wheel(
    source: Source, pinned: Pinned, place: Path, *, pip: Sequence[str], name: str, progress: Progress
) -> Path:
    """The wheel of a source package, compiled now unless it was before.

    `pip` is the installer, set to the Python that the wheel is for; `name` the build that wants it. Two
    compilations of one wheel wait for each other. Raises EngineFailed with the end of the output.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    what = f"{source.package} {pinned.version}"
    with alone(place.with_name(place.name + ".lock"), name, progress):
        known = known_wheel(place)
        if known is not None:
            progress.note(f"{name}: {what} was compiled before")
            return known
        for left in [place, *place.parent.glob(f"{place.name}.part-*")]:
            shutil.rmtree(left, ignore_errors=True)
        # A name of its own: the compiler of a killed build may be at work in the old one.
        part = Path(tempfile.mkdtemp(prefix=f"{place.name}.part-", dir=place.parent))
        requirement = part / "requirement.txt"
        write_whole(requirement, pinned.entry.encode())
        progress.note(f"{name}: compiling {what}, once; it can take ten minutes on two cores")
        wanted = ["--no-binary", source.package, "--require-hashes", "-r", str(requirement), "-w", str(part)]
        run(
            # Without the installer's own cache, which knows nothing of the arguments.
            [*pip, "wheel", "--verbose", "--no-deps", "--no-cache-dir", *wanted],
            name,
            progress,
            {"CMAKE_ARGS": " ".join(source.cmake)},
        )
        wheels = sorted(part.glob("*.whl"))
        if len(wheels) != 1:
            raise EngineFailed(f"{what} was compiled to {len(wheels)} wheels", where=str(part))
        return keep_wheel(wheels[0], place, source)


def this_machine(version: str) -> str:
    """Which wheels fit: implementation, version and machine of a Python of `version` beside ours."""
    return f"{sys.implementation.name}-{version}-{sys.platform}-{os.uname().machine}"


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
