"""Whether what was compiled on this machine runs in the images, which have their release's C libraries."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from prereg.collect.image_base import RELEASE
from prereg.errors import EngineFailed

HAS = {"GLIBC": (2, 36), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13)}
"""The newest versions of symbols that Debian bookworm's C and C++ libraries have."""

# A library names the versions of the symbols that it was linked to as words between zeros.
_WANTED = re.compile(rb"\0(GLIBC|GLIBCXX|CXXABI)_([0-9]+(?:\.[0-9]+)+)(?=\0)")


def refuse_unfit(wheel: Path, build: str) -> None:
    """Raise EngineFailed if a wheel has a library that wants a newer C library than the images have."""
    newer = {name: version for name, version in sorted(wanted(wheel).items()) if version > HAS[name]}
    if newer:
        said = ", ".join(f"{name} {'.'.join(map(str, version))}" for name, version in newer.items())
        raise EngineFailed(
            f"{wheel.name} was compiled on a newer system than the images have (Debian {RELEASE}): "
            f"it wants {said}",
            where=str(wheel),
            next_step=f"prereg build {build} on Debian {RELEASE} or an older system, and the folder "
            f"wheels/{wheel.parent.name} of its cache in the place of {wheel.parent}",
        )


def wanted(wheel: Path) -> dict[str, tuple[int, ...]]:
    """The newest version of each system library's symbols that the libraries in a wheel were linked to."""
    newest: dict[str, tuple[int, ...]] = {}
    for data in _libraries(wheel):
        for name, version in _WANTED.findall(data):
            parts = tuple(int(part) for part in version.split(b"."))
            newest[name.decode()] = max(parts, newest.get(name.decode(), ()))
    return newest


def _libraries(wheel: Path) -> Iterator[bytes]:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            if data.startswith(b"\x7fELF"):
                yield data
