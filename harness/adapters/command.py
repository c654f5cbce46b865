"""Runs a study's own command once a request: experiments that have no decoding engine.

The command prints `rows` JSON lines `{"value": string | number | boolean}` and exits with 0. Whatever else
it does is a crash outcome, `ExitStatus` or `BadOutput`: a broken draw is data, not a reason to stop.
"""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from harness.adapters.base import Arm, Counters, Draw, Kernel, Outcome
from harness.wire import BAD_REQUEST, ENGINE, UNSUPPORTED, JobError

MAX_INTEGER = 2**53 - 1


class CommandAdapter:
    """An adapter whose engine is an argv with the placeholders `{arm}`, `{seed}`, `{rows}` and `{python}`."""

    __slots__ = ("_argv", "_cwd")

    def __init__(self) -> None:
        self._argv: list[str] = []
        self._cwd: str | None = None

    def open(
        self,
        configuration: Mapping[str, Any],
        model: Mapping[str, Any] | None,
        prompt: Sequence[int] | None,
        cwd: str | None,
    ) -> str | None:
        """Take the command of `configuration`, to be run in `cwd`. There is no model, so no digest."""
        command = configuration.get("command")
        if not isinstance(command, list) or not command or not all(isinstance(part, str) for part in command):
            raise JobError(BAD_REQUEST, "configuration.command is not a nonempty list of strings")
        self._argv, self._cwd = list(command), cwd
        return None

    def draws(self, arm: Arm, seed: str, rows: int) -> list[Draw]:
        """Run the command once: `rows` values in the order of its lines, or `rows` times the same crash.

        Raises JobError where there is no draw to speak of: it cannot start, or somebody else killed it.
        """
        known = {"{arm}": arm.id, "{seed}": seed, "{rows}": str(rows), "{python}": sys.executable}
        argv = [*_program(self._argv[0], known), *(_filled(part, known) for part in self._argv[1:])]
        try:
            done = subprocess.run(
                argv, cwd=self._cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False
            )
        except OSError as error:
            # Nothing ran, so there is no draw to speak of.
            raise JobError(ENGINE, f"cannot start {argv[0]!r}: {error}") from error
        if done.returncode == -signal.SIGKILL:
            # Somebody else did: the system where memory is short, or a person. That is no word of the engine.
            raise JobError(ENGINE, f"{argv[0]!r} was killed (SIGKILL) while it drew with seed {seed}")
        return [Draw(outcome=outcome, counters=Counters()) for outcome in _read(done, rows)]

    def kernel(self) -> Kernel:
        """A command has no kernel to enumerate."""
        raise JobError(UNSUPPORTED, "a command has no oracle")


def _program(word: str, known: Mapping[str, str]) -> list[str]:
    """The first word of the command; `{python}` brings its folder of byte code with it there.

    Elsewhere it is one word, since another program takes it. What such a program starts hears of the folder
    by a variable, unless it is told to ignore it (`-I`, `-E`).
    """
    if word == "{python}" and sys.pycache_prefix is not None:
        # Said as an option, since `-I` and `-E` ignore the variable: byte code that lies in the environment
        # is no part of its fingerprint, and would be run.
        return [sys.executable, "-X", f"pycache_prefix={sys.pycache_prefix}"]
    return [_filled(word, known)]


def _filled(word: str, known: Mapping[str, str]) -> str:
    for placeholder, value in known.items():
        word = word.replace(placeholder, value)
    return word


def _read(done: subprocess.CompletedProcess[bytes], rows: int) -> list[Outcome]:
    if done.returncode != 0:
        return [{"crash": "ExitStatus"}] * rows
    lines = done.stdout.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    if len(lines) != rows:
        return [{"crash": "BadOutput"}] * rows
    try:
        return [{"value": _value(line)} for line in lines]
    except (ValueError, RecursionError):
        return [{"crash": "BadOutput"}] * rows


def _value(line: bytes) -> str | int | float | bool:
    """The value of one line of output; ValueError if a record could not hold it (docs/formats.md, 1)."""
    # Objects become tuples, so that an array of pairs is not taken for one.
    pairs = json.loads(line.decode("utf-8"), object_pairs_hook=tuple, parse_constant=_refuse)
    if not isinstance(pairs, tuple) or len(pairs) != 1 or pairs[0][0] != "value":
        raise ValueError("not an object with the one key value")
    value = pairs[0][1]
    if isinstance(value, str):
        if unicodedata.normalize("NFC", value) != value:
            raise ValueError("not in normal form C")
        value.encode("utf-8")  # refuses lone surrogates
        return value
    if isinstance(value, int) and abs(value) <= MAX_INTEGER:  # a boolean is one
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise ValueError("neither a string, a number nor a boolean")


def _refuse(name: str) -> Any:
    raise ValueError(name)
