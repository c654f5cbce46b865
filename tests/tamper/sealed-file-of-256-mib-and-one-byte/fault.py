"""A file longer than 256 MiB is refused before it is read whole, whatever the manifest says of it."""

import hashlib
import os
from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "NOTES.md"
SIZE = (1 << 28) + 1


def apply(study: Path, tools: ModuleType) -> None:
    notes = study / "NOTES.md"
    forge.sealed_file(study, notes.name, b"")
    os.truncate(notes, SIZE)
    with notes.open("rb") as file:
        sha = hashlib.file_digest(file, "sha256").hexdigest()
    empty = tools.sha(b"")
    sums = study / "seal/SHA256SUMS"
    sums.write_text(sums.read_text().replace(f"{empty}  {notes.name}\n", f"{sha}  {notes.name}\n"))

    def entered(value: dict[str, list[dict[str, object]]]) -> None:
        for entry in value["files"]:
            if entry["path"] == notes.name:
                entry |= {"size": SIZE, "sha256": sha}

    forge.manifest(study, entered)
