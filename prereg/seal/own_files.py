"""Files of a study's own classes: what is run is sealed with it (docs/formats.md section 6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prereg.codec.canonical import digest
from prereg.errors import UsageError
from prereg.model.study import Protocol
from prereg.seal.manifest import path_fault

LISTS = ("processors", "stopping", "stopping_criteria")
"""The features that name classes; the last is llama-cpp-python's word for the second."""


def own_files(protocol: Protocol) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every entry of a configuration's features that names a file, with its JSON pointer."""
    for i, configuration in enumerate(protocol.configurations):
        for name in LISTS:
            entries = configuration.features.get(name)
            for j, entry in enumerate(entries if isinstance(entries, list) else ()):
                if isinstance(entry, dict) and "file" in entry:
                    yield f"protocol.json#/configurations/{i}/features/{name}/{j}", entry


def own_file_problems(protocol: Protocol, files: Mapping[str, bytes]) -> Iterator[UsageError]:
    """Every such entry whose file is not among `files`, by path in the study's folder, with its `sha256`."""
    for at, entry in own_files(protocol):
        file = entry["file"]
        fault = path_fault(file) if isinstance(file, str) else "is not a string"
        if fault is not None:
            yield UsageError(
                f"the file of an own class is not sealed: {file!r} {fault}",
                where=f"{at}/file",
                next_step="copy it into the study's folder and name it by its path there",
            )
            continue
        data = files.get(file)
        if data is None:
            yield UsageError(
                f"the file of an own class is not sealed: there is no {file!r} in the study's folder",
                where=f"{at}/file",
                next_step="copy it there",
            )
        elif entry.get("sha256") != digest(data):
            said = f"{entry['sha256']!r} is not the digest" if "sha256" in entry else "there is no digest"
            yield UsageError(
                f"{said} of {file}, which is {digest(data)}",
                where=f"{at}/sha256",
                next_step=f'"sha256": "{digest(data)}", if this is the file that is meant',
            )
