"""Files that a protocol names: what is run or believed is sealed with it (docs/formats.md, 6 and 18)."""

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
    """Every such entry whose file is not among `files`, by path in the study's folder, with its `sha256`.

    The certificates that the protocol's `timestamp` names are files that count too: they must be sealed.
    """
    yield from _roots_problems(protocol, files)
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


def _roots_problems(protocol: Protocol, files: Mapping[str, bytes]) -> Iterator[UsageError]:
    if protocol.timestamp is None:
        return
    from prereg.seal.timestamp import BadTimestamp, load_roots

    roots, at = protocol.timestamp.roots, "protocol.json#/timestamp/roots"
    remedy = "copy the authority's root certificate, in PEM, into the study's folder and name it there"
    fault = path_fault(roots)
    if fault is not None or roots not in files:
        what = fault or "is no file in the study's folder"
        yield UsageError(f"the certificates are not sealed: {roots!r} {what}", where=at, next_step=remedy)
        return
    try:
        load_roots(files[roots], where=roots)
    except BadTimestamp as error:
        yield UsageError(error.what, where=roots, next_step=remedy)
