"""The manifest and SHA256SUMS: their values, their bytes, and which paths they may hold (section 3)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Literal

from prereg.codec.canonical import digest, dump_file
from prereg.codec.convert import read_machine, to_json
from prereg.errors import VerificationFailed
from prereg.model.names import part_fault
from prereg.model.seal import Manifest, SealedFile
from prereg.store.folder import is_unsealed
from prereg.store.ledger import parse_time

WHERE = "seal/manifest.json"
SUMS = "seal/SHA256SUMS"
Mode = Literal["100644", "100755"]


def path_fault(path: str) -> str | None:
    """Why a path may not stand in a manifest, or None."""
    if path.startswith("/") or any(part in ("", ".", "..") for part in path.split("/")):
        return "has an empty part, `.` or `..`"
    if "\\" in path:
        return "has a backslash"
    if any(unicodedata.category(ch) in ("Cc", "Cs") for ch in path):
        return "has a control character or is not UTF-8"
    if not unicodedata.is_normalized("NFC", path):
        return "is not in Unicode form NFC"
    if fault := next((found for part in path.split("/") if (found := part_fault(part))), None):
        return fault
    if is_unsealed(path):
        return "lies at a place that a manifest does not cover"
    return None


def paths_fault(paths: Iterable[str]) -> tuple[int, str] | None:
    """The first path that may not stand where it does, as its position and the reason, or None."""
    seen: dict[str, str] = {}
    before = ""
    for i, path in enumerate(paths):
        if fault := path_fault(path):
            return i, f"the path {path!r} {fault}"
        folded = unicodedata.normalize("NFC", path.casefold())
        if folded in seen:
            return i, f"the paths {seen[folded]!r} and {path!r} are the same on some file systems"
        if i and path < before:
            return i, f"the path {path!r} is out of order"
        seen[folded] = before = path
    return None


def sealed_files(files: Mapping[str, tuple[bytes, Mode]]) -> tuple[SealedFile, ...]:
    """The entries of a manifest, in order. Raises VerificationFailed for a path that it may not hold."""
    names = sorted(files)
    if fault := paths_fault(names):
        raise VerificationFailed(fault[1], where=names[fault[0]], next_step="rename the file")
    return tuple(
        SealedFile(path=name, size=len(files[name][0]), mode=files[name][1], sha256=digest(files[name][0]))
        for name in names
    )


def manifest_bytes(manifest: Manifest) -> bytes:
    """The bytes that are signed and whose SHA-256 is the seal digest."""
    return dump_file(to_json(manifest))


def sums_bytes(manifest: Manifest, data: bytes) -> bytes:
    """SHA256SUMS for a manifest with those bytes."""
    lines = [f"{f.sha256}  {f.path}\n" for f in manifest.files]
    return "".join([*lines, f"{digest(data)}  {WHERE}\n"]).encode()


def read_manifest(data: bytes) -> Manifest:
    """Parse a manifest and check its paths. Raises a codec error or VerificationFailed."""
    manifest = read_machine(data, "manifest", Manifest, where=WHERE)
    if fault := paths_fault(f.path for f in manifest.files):
        raise VerificationFailed(fault[1], where=f"{WHERE}#/files/{fault[0]}/path")
    try:
        parse_time(manifest.created)
    except ValueError as error:
        raise VerificationFailed(f"no such time: {error}", where=f"{WHERE}#/created") from None
    return manifest
