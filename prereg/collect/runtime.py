"""Engine builds and the environments made from them: one virtual environment for each locked build."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prereg.codec.canonical import Json, digest, dump_file, loads, loads_machine, value_digest
from prereg.collect.installer import alone, command, pip_for, run
from prereg.collect.progress import Progress
from prereg.collect.wheels import (
    Source,
    check_sources,
    compiled_wheel,
    split_lock,
    this_machine,
    wheel_place,
)
from prereg.errors import EngineFailed, UsageError, WrongState
from prereg.store.files import read_once, write_whole
from prereg.store.layout import harness_root

MARKER = "built.json"
_ROLES = {"off": "reference", "on": "test"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """A pinned engine build: `harness/builds/<name>/`."""

    name: str
    adapter: str
    python: str
    """Least minor version of Python that it needs, such as `3.11`; the fingerprint binds the one it got."""
    requests_per_second: dict[str, float]
    """Requests a second on one core, by the role of the arm; for estimates only."""
    unhashed: tuple[str, ...]
    """Exact requirements whose archives have different hashes on different hosts."""
    lock: bytes
    """requirements.lock."""
    data: bytes = b""
    """data.lock: packages of which only the files are wanted, so that what they require is not installed."""
    compiled: tuple[Source, ...] = ()
    """Packages of the lock that come as source alone."""

    @property
    def lock_digest(self) -> str:
        """Digest of everything that decides what gets installed."""
        parts: dict[str, Json] = {
            "lock": digest(self.lock),
            "python": self.python,
            "unhashed": list(self.unhashed),
        }
        if self.data:
            parts["data"] = digest(self.data)
        if self.compiled:
            parts["compiled"] = [{"package": s.package, "cmake": list(s.cmake)} for s in self.compiled]
        return value_digest(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A finished environment: the contents of its marker file."""

    name: str
    lock: str
    fingerprint: str
    python: str
    time: str
    detail: dict[str, Any]
    """What the fingerprint was taken over, to name what changed."""


def parse_build(name: str, spec: bytes, lock: bytes, *, where: str, data: bytes = b"") -> Build:
    """A build from the bytes of its build.json, requirements.lock and data.lock. Raises UsageError."""
    value = loads(spec, where=where)
    try:
        if not isinstance(value, dict):
            raise TypeError("not an object")
        build = Build(
            name=str(value["name"]),
            adapter=str(value["adapter"]),
            python=str(value["python"]),
            requests_per_second={_ROLES.get(k, k): float(v) for k, v in value["requests_per_second"].items()},
            unhashed=tuple(str(r) for r in value["unhashed"]),
            lock=lock,
            data=data,
            compiled=tuple(
                Source(package=str(s["package"]), cmake=tuple(str(a) for a in s["cmake"]))
                for s in value.get("compiled", [])
            ),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"is not the description of a build: {error!r}", where=where) from None
    if build.name != name:
        raise UsageError(f"describes the build {build.name!r}, not {name!r}", where=f"{where}#/name")
    for i, requirement in enumerate(build.unhashed):
        if "==" not in requirement:
            raise UsageError(f"{requirement!r} is not pinned with ==", where=f"{where}#/unhashed/{i}")
    check_sources(build.compiled, build.lock, where=where)
    return build


def builds_folder() -> Path:
    """The folder of this installation's builds."""
    return harness_root() / "builds"


def build_names() -> list[str]:
    """The builds of this installation."""
    return sorted(p.parent.name for p in builds_folder().glob("*/build.json"))


def load_build(name: str) -> Build:
    """The build of that name in this installation. Raises UsageError if there is none."""
    folder = builds_folder() / name
    if not (folder / "build.json").is_file():
        raise UsageError(
            f"there is no build {name!r}; there are: {', '.join(build_names()) or 'none'}",
            where=str(builds_folder()),
            next_step="prereg build --list",
        )
    lock, data = folder / "requirements.lock", folder / "data.lock"
    return parse_build(
        name,
        read_once(folder / "build.json"),
        read_once(lock) if lock.exists() else b"",
        where=f"harness/builds/{name}/build.json",
        data=read_once(data) if data.exists() else b"",
    )


def sealed_build(name: str, files: Mapping[str, bytes]) -> Build:
    """The build of that name as sealed under `code/harness/builds/`, else this installation's.

    A seal that carries the build decides alone: a later lock of the same name is another environment.
    """
    folder = f"code/harness/builds/{name}"
    spec = files.get(f"{folder}/build.json")
    if spec is None:
        return load_build(name)
    return parse_build(
        name,
        spec,
        files.get(f"{folder}/requirements.lock", b""),
        where=f"{folder}/build.json",
        data=files.get(f"{folder}/data.lock", b""),
    )


def cache_folder() -> Path:
    """Where environments are kept: PREREG_CACHE, else the user's cache folder."""
    override = os.environ.get("PREREG_CACHE")
    if override:
        return Path(override).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").absolute() / "prereg"


def environment_folder(build: Build) -> Path:
    """Where the environment of `build` is, or would be."""
    return cache_folder() / "builds" / f"{build.name}-{build.lock_digest[:12]}"


def built(build: Build) -> Built | None:
    """The marker of a finished environment, or None if there is no finished one."""
    marker = environment_folder(build) / MARKER
    if not marker.is_file():
        return None
    value = loads_machine(read_once(marker), where=str(marker))
    if not isinstance(value, dict) or value.get("lock") != build.lock_digest:
        return None
    try:
        return Built(**value)
    except TypeError:
        return None


def environment_of(build: Build | str) -> Path:
    """The folder of a finished environment. Raises WrongState if it is not built."""
    if isinstance(build, str):
        build = load_build(build)
    if built(build) is None:
        raise WrongState(
            f"the build {build.name} is not built",
            where=str(environment_folder(build)),
            next_step=command(build.name),
        )
    return environment_folder(build)


def interpreter(environment: Path) -> Path:
    """The Python of an environment."""
    return environment / "bin" / "python"


def build_environment(name: str | Build, progress: Progress) -> Path:
    """Make the environment of a build, or return the finished one.

    Two builds of one lock at once wait for each other; what a killed build leaves has no marker and is made
    anew. Raises EngineFailed with the end of the installer's output.
    """
    build = load_build(name) if isinstance(name, str) else name
    folder = environment_folder(build)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with alone(folder.with_name(folder.name + ".lock"), build.name, progress):
        if built(build) is not None:
            return folder
        if folder.exists():
            shutil.rmtree(folder)
        base, version = base_python(build)
        progress.note(f"{build.name}: making the environment {folder}")
        run([base, "-m", "venv", "--without-pip", str(folder)], build.name, progress)
        _install(build, base, version, folder, progress)
        _finish(build, folder, progress)
    return folder


def _install(build: Build, base: str, version: str, folder: Path, progress: Progress) -> None:
    wanted = [line for line in build.lock.decode("utf-8", "replace").splitlines() if line.strip()]
    if not (build.unhashed or build.data or any(not line.lstrip().startswith("#") for line in wanted)):
        return
    pip = [
        *pip_for(base, build.name),
        "--python",
        str(interpreter(folder)),
        "--disable-pip-version-check",
        "--no-input",
    ]
    rest, pinned = split_lock(build.lock, [source.package for source in build.compiled])
    wheels: list[str] = []
    for source in build.compiled:
        entry = pinned[source.package]
        place = wheel_place(cache_folder() / "wheels", source, entry, this_machine(version))
        wheel = compiled_wheel(source, entry, place, pip=pip, name=build.name, progress=progress)
        wheels.append(str(wheel))
    if rest.strip():
        lock = folder / "requirements.lock"
        write_whole(lock, rest)
        progress.note(f"{build.name}: installing what the lock lists")
        run([*pip, "install", "--require-hashes", "--no-deps", "-r", str(lock)], build.name, progress)
    if wheels:
        progress.note(f"{build.name}: installing what was compiled")
        run([*pip, "install", "--no-index", "--no-deps", *wheels], build.name, progress)
    if build.unhashed:
        progress.note(f"{build.name}: installing {', '.join(build.unhashed)}")
        # With dependencies: a CPU build finds all of them in the lock; another build of the same version may
        # bring libraries of its own, and the fingerprint binds whatever was installed.
        run([*pip, "install", *build.unhashed], build.name, progress)
    run([*pip, "check"], build.name, progress)
    if build.data:
        data = folder / "data.lock"
        write_whole(data, build.data)
        progress.note(f"{build.name}: installing the files that data.lock lists")
        # After the check: what these packages require is not there, and not wanted.
        run([*pip, "install", "--require-hashes", "--no-deps", "-r", str(data)], build.name, progress)


def _finish(build: Build, folder: Path, progress: Progress) -> None:
    from prereg.collect.environments import fingerprint_at  # it runs a worker, and a worker needs this module

    progress.note(f"{build.name}: taking the fingerprint")
    taken = fingerprint_at(folder, harness_root().parent)
    marker = {
        "name": build.name,
        "lock": build.lock_digest,
        "fingerprint": taken.digest,
        "python": str(taken.detail.get("python", "")),
        "time": datetime.now(UTC).isoformat(),
        "detail": taken.detail,
    }
    write_whole(folder / MARKER, dump_file(marker))
    progress.note(f"{build.name}: built, fingerprint {taken.digest}")


def base_python(build: Build) -> tuple[str, str]:
    """The interpreter to build with, and its version: PREREG_PYTHON, else the one under ours; it must fit."""
    base = os.environ.get("PREREG_PYTHON") or getattr(sys, "_base_executable", "") or sys.executable
    code = "import sys; sys.stdout.write('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run(
            [base, "-I", "-c", code], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineFailed(f"cannot run {base}: {error}", next_step="set PREREG_PYTHON") from None
    version = done.stdout.decode("ascii", "replace").strip()
    if _minor(version) < _minor(build.python):
        raise EngineFailed(
            f"{build.name} needs Python {build.python} or newer; {base} is {version or 'no Python'}",
            next_step=f"PREREG_PYTHON=/path/to/python{build.python} {command(build.name)}",
        )
    return base, version


def _minor(version: str) -> tuple[int, ...]:
    """`3.11` as (3, 11); (0,) for what is no version."""
    parts = version.split(".")
    return tuple(int(part) for part in parts) if all(part.isdigit() for part in parts) else (0,)
