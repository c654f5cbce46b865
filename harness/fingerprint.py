"""What an environment is made of: a digest over the bytes of every installed file.

Two environments of one lock at different places have the same fingerprint; one changed byte gives another.
Standard library only, so that it can be taken before any engine is trusted enough to be imported.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import os
import platform
import re
import site
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.parser import HeaderParser
from functools import partial
from pathlib import Path
from typing import Any

# Written by the installer about the installation, not part of what was installed.
INSTALLER_NOTES = frozenset({"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"})
MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """One installed distribution and the files that its RECORD lists."""

    name: str
    version: str
    files: tuple[str, ...]
    """Paths relative to its site folder, `/`-separated, without what the installer writes for itself."""


def describe(folders: Sequence[Path] | None = None) -> dict[str, Any]:
    """Describe the environment of this process (or the given site folders).

    Returns `{"python", "implementation", "machine", "distributions": {name: {"version", "files"}},
    "unowned"}`. `files` is the SHA-256 of the sorted lines `path sha256\\n`, with the word `missing` for a
    listed file that is not there; `unowned` lists `path sha256` for each file in a site folder that no
    distribution claims, and for each program in the environment's `bin` that none claims or that is not
    what its RECORD says. Byte code caches (`__pycache__`) are left out: they differ from one installation to
    the next. `executable` is the digest of the interpreter that the environment's `python` leads to.
    """
    programs: list[str] = []
    if folders is None:
        programs = _programs(Path(sys.prefix)) if sys.prefix != sys.base_prefix else []
        folders = sorted(
            {Path(folder).resolve() for folder in site.getsitepackages() if Path(folder).is_dir()}
        )
    distributions: dict[str, dict[str, str]] = {}
    unowned: list[str] = []
    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        for place, folder in enumerate(folders):
            owned: set[str] = set()
            # Only a second site folder could hold a name twice; it is kept apart rather than merged.
            suffix = f"#{place}" if place else ""
            for distribution in _distributions(folder):
                owned.update(distribution.files)
                lines = sorted(pool.map(partial(_line, folder), distribution.files))
                files = hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
                distributions[distribution.name + suffix] = {"version": distribution.version, "files": files}
            loose = [path for path in _walk(folder) if path not in owned and not _is_note(path)]
            unowned.extend(line.rstrip("\n") + suffix for line in pool.map(partial(_line, folder), loose))
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "machine": platform.machine(),
        "executable": _executable(),
        "distributions": distributions,
        "unowned": sorted(unowned + programs),
    }


def _executable() -> str:
    """SHA-256 of the program behind this environment's `bin/python`, through links."""
    # By the prefix and not by sys.executable: a wrapper in its place would name the real one there.
    place = Path(sys.prefix, "bin", "python")
    with (place if place.exists() else Path(sys.executable)).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _programs(prefix: Path) -> list[str]:
    """Each program of an environment's `bin` that its installer did not put there as is: `bin/NAME SHA-256`.

    `bin` is in the PATH of what an engine starts. A script names its environment in its first line,
    so scripts are held against the RECORD of their installation and not put into a digest.
    """
    interpreter = (prefix / "bin" / "python").resolve()
    recorded = {
        (Path(os.path.normpath(folder / row[0])), row[1].removeprefix("sha256="))
        for folder in map(Path, site.getsitepackages())
        for record in folder.glob("*.dist-info/RECORD")
        for row in csv.reader(record.read_text(encoding="utf-8").splitlines())
        if len(row) > 1 and row[0].startswith("../")
    }
    found = []
    for place in sorted((prefix / "bin").iterdir()):
        if place.resolve() == interpreter or (place.is_file() and not place.stat().st_mode & 0o111):
            continue  # the interpreter's own names, and texts such as `activate` that no PATH leads to
        if place.is_dir() or not place.exists():
            found.append(f"bin/{place.name} {'folder' if place.is_dir() else MISSING}")
            continue
        with place.open("rb") as stream:
            taken = hashlib.file_digest(stream, "sha256")
        as_recorded = base64.urlsafe_b64encode(taken.digest()).rstrip(b"=").decode("ascii")
        if (place, as_recorded) not in recorded:
            found.append(f"bin/{place.name} {taken.hexdigest()}")
    return found


def digest(detail: dict[str, Any]) -> str:
    """SHA-256 (64 hex digits) of the canonical JSON of what `describe` returned."""
    text = json.dumps(detail, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _distributions(folder: Path) -> list[Distribution]:
    found = []
    for metadata in sorted(folder.glob("*.dist-info")):
        record = metadata / "RECORD"
        if not record.is_file():
            continue  # its files are then listed as unowned, which is what they are
        headers = HeaderParser().parsestr((metadata / "METADATA").read_text("utf-8", "replace"), True)
        with record.open(encoding="utf-8", newline="") as stream:
            paths = {_inside(folder, row[0]) for row in csv.reader(stream) if row} - {""}
        found.append(
            Distribution(
                name=re.sub(r"[-_.]+", "-", str(headers["Name"])).lower(),
                version=str(headers["Version"]),
                files=tuple(sorted(path for path in paths if not _is_note(path) and not _is_cache(path))),
            )
        )
    return found


def _inside(folder: Path, path: str) -> str:
    """The path relative to `folder`, or nothing for a script that names its own environment's interpreter."""
    # Lexically, not through links: `..` must mean here what it means in the RECORD.
    relative = os.path.relpath(folder / path, folder).replace(os.sep, "/")
    if not relative.startswith("../"):
        return relative
    try:
        with (folder / relative).open("rb") as stream:
            return "" if stream.read(2) == b"#!" else relative
    except FileNotFoundError:
        return ""  # a removed script or manual page outside the site folder changes nothing that is imported


def _is_cache(path: str) -> bool:
    # Byte code in a cache folder stands for a source; elsewhere it is imported in the place of one.
    return "__pycache__" in path.split("/")


def _is_note(path: str) -> bool:
    parts = path.split("/")
    return len(parts) == 2 and parts[0].endswith(".dist-info") and parts[1] in INSTALLER_NOTES


def _walk(folder: Path) -> list[str]:
    found = []
    for root, folders, files in os.walk(folder, onerror=_raise):
        folders[:] = [name for name in folders if name != "__pycache__"]
        # A linked folder is not walked into, so the link itself is what is listed.
        links = [name for name in folders if Path(root, name).is_symlink()]
        for name in [*files, *links]:
            path = Path(root, name).relative_to(folder).as_posix()
            if not _is_cache(path):
                found.append(path)
    return sorted(found)


def _raise(error: OSError) -> None:
    raise error


def _line(folder: Path, path: str) -> str:
    place = folder / path
    if place.is_dir():
        return f"{path} link:{place.readlink()}\n"
    try:
        with place.open("rb") as stream:
            return f"{path} {hashlib.file_digest(stream, 'sha256').hexdigest()}\n"
    except FileNotFoundError:
        return f"{path} {MISSING}\n"
