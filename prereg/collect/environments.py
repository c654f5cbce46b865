"""Fingerprints of environments, and the names of what differs when one is not the sealed one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prereg.collect.network import isolation
from prereg.collect.runtime import Build, built, environment_of, interpreter, load_build
from prereg.collect.worker import Launch, Worker, WorkerLost, WorkerRefused
from prereg.errors import EngineFailed
from prereg.store.layout import harness_root


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """The digest of an environment and what it was taken over."""

    digest: str
    detail: dict[str, Any]


def fingerprint_at(environment: Path, code: Path, byte_code: Path | None = None) -> Fingerprint:
    """The fingerprint of the environment in that folder, taken by the `harness/` in `code`.

    What takes it is compiled into `byte_code`, else into a folder that is removed afterwards: byte code that
    lies in the environment is not looked at, and does not run. Raises EngineFailed if no worker starts in it.
    """
    with tempfile.TemporaryDirectory(prefix="prereg-") as scratch:
        launch = Launch(
            python=interpreter(environment),
            code=code,
            scratch=Path(scratch),
            isolation=isolation(),
            byte_code=byte_code or Path(scratch) / "byte-code",
        )
        try:
            with Worker(launch) as worker:
                value = worker.call("fingerprint")
            return Fingerprint(digest=str(value["digest"]), detail=dict(value["detail"]))
        except (WorkerLost, WorkerRefused, OSError, KeyError, TypeError) as error:
            raise EngineFailed(
                f"no worker runs in this environment: {error}",
                where=str(environment),
                next_step="prereg build NAME",
            ) from None


def fingerprints(names: Iterable[str]) -> dict[str, str]:
    """The fingerprint of each named build's environment, for the manifest. All must be built."""
    code = harness_root().parent
    return {
        name: fingerprint_at(environment_of(load_build(name)), code).digest for name in sorted(set(names))
    }


def detail_of(build: Build) -> Mapping[str, Any]:
    """What the fingerprint of an environment was taken over when it was built; empty if unknown."""
    marker = built(build)
    return {} if marker is None else marker.detail


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What of an environment is not as it was, by name; empty if nothing, or if nothing is known of then."""
    if not then:
        return []
    changed = [
        f"{key} {then.get(key)} is now {now.get(key)}"
        for key in ("python", "implementation", "machine")
        if then.get(key) != now.get(key)
    ]
    old, new = dict(then.get("distributions", {})), dict(now.get("distributions", {}))
    for name in sorted({*old, *new}):
        if name not in new:
            changed.append(f"{name} is gone")
        elif name not in old:
            changed.append(f"{name} {new[name].get('version')} is new")
        elif old[name] != new[name]:
            versions = old[name].get("version"), new[name].get("version")
            changed.append(
                f"files of {name} {versions[0]} changed"
                if versions[0] == versions[1]
                else f"{name} {versions[0]} is now {versions[1]}"
            )
    old_files, new_files = set(then.get("unowned", [])), set(now.get("unowned", []))
    loose = {line.split(" ")[0] for line in old_files ^ new_files}
    changed += [f"file {name} is new, gone or changed" for name in sorted(loose)]
    return changed
