"""Where a class lives, so that another process can make it: its file, its name and the file's digest."""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prereg.errors import UsageError

MOVE = "define the class at the top level of a file of its own, and give the class itself"


def entry(given: object, arguments: Mapping[str, Any] | None, what: str) -> dict[str, Any]:
    """The `{"file", "class", "arguments", "sha256"}` of a class, or of the text `path/to/file.py:Class`.

    Raises UsageError for what no other process could make: instances, nested, local and computed classes,
    lambdas, and arguments that are not JSON. `what` names the parameter in messages.
    """
    file, name = _place(given, what)
    try:
        source = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{what}: {error}", next_step=MOVE) from None
    return {
        "file": str(file),
        "class": name,
        "arguments": _arguments(arguments or {}, what),
        "sha256": hashlib.sha256(source).hexdigest(),
    }


def _place(given: object, what: str) -> tuple[Path, str]:
    if isinstance(given, str):
        place, _, name = given.rpartition(":")
        if not place or not name.isidentifier():
            raise UsageError(f"{what} is not path/to/file.py:Class: {given!r}", next_step=MOVE)
        return Path(place).resolve(), name
    if not isinstance(given, type):
        raise UsageError(
            f"{what} is not a class but {_shown(given)}: every request of the engine needs a fresh instance",
            next_step=MOVE,
        )
    name = given.__qualname__
    if not name.isidentifier():
        raise UsageError(
            f"{what}: {name} is nested or local, out of reach of another process", next_step=MOVE
        )
    try:
        file = Path(inspect.getfile(given)).resolve()
    except (TypeError, OSError):
        raise UsageError(f"{what}: {name} has no file of Python source", next_step=MOVE) from None
    if file.suffix != ".py" or not file.is_file():
        raise UsageError(f"{what}: {name} has no file of Python source, only {file}", next_step=MOVE)
    if getattr(sys.modules.get(given.__module__), name, None) is not given:
        raise UsageError(
            f"{what}: {file} has no {name} at its top level that is the class that was given", next_step=MOVE
        )
    return file, name


def _shown(given: object) -> str:
    kind = type(given).__qualname__
    if inspect.isroutine(given):
        return f"a {kind} ({getattr(given, '__qualname__', kind)})"
    return f"an instance of {kind}"


def _arguments(arguments: Mapping[str, Any], what: str) -> dict[str, Any]:
    try:
        text = json.dumps(dict(arguments), allow_nan=False)
        same = json.loads(text)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"the arguments of {what} go to the engine's process as JSON: {error}",
            next_step="make what is no JSON inside the class",
        ) from None
    if same != dict(arguments):
        raise UsageError(
            f"the arguments of {what} would arrive as {text}, which is not what was given",
            next_step="use lists for tuples and text for keys",
        )
    return dict(same)
