"""JSON lines between the collector and a worker.

One request a line on the worker's stdin, one reply a line on a private copy of its stdout. The engine never
sees either: file descriptor 0 becomes the null device and file descriptor 1 becomes file descriptor 2, so
that an engine that prints (from Python, C or a child process) cannot break a reply in two.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

VERSION = 1

BAD_REQUEST = "bad-request"
ENGINE = "engine"
UNSUPPORTED = "unsupported"

MAX_SEED = 2**64


class JobError(Exception):
    """A request that cannot be carried out. The worker answers with it and goes on."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of input: a request, or the reason why it is none."""

    request: Mapping[str, Any] | None
    fault: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """The two private streams of a worker."""

    source: BinaryIO
    sink: BinaryIO

    def lines(self) -> Iterator[Line]:
        """Yield each line of the source until it ends. Blank lines are skipped."""
        while raw := self.source.readline():
            if raw.strip():
                yield parse(raw)

    def send(self, message: Mapping[str, Any]) -> None:
        """Write one reply and flush it, so that a reader sees every finished request at once."""
        # ASCII escapes: a lone surrogate in an engine's message must not stop the reply from being encoded.
        text = json.dumps(message, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
        self.sink.write(text.encode("ascii") + b"\n")
        self.sink.flush()


def parse(raw: bytes) -> Line:
    """Parse one line (bytes of a JSON object) into a `Line`; never raises."""
    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        return Line(request=None, fault=f"not a line of JSON: {error}")
    if not isinstance(value, dict):
        return Line(request=None, fault="not a JSON object")
    return Line(request=value, fault="")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("an object has the same key twice")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def take_over() -> Channel:
    """Move stdin and stdout to private descriptors and give the engine the null device and stderr instead."""
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    # Python's own text layer over descriptor 1 stays: it now writes to stderr. What it had buffered must
    # not come out later in the middle of other text.
    sys.stdout.flush()
    return Channel(source=source, sink=sink)


def is_seed(text: str) -> bool:
    """Whether the text is a 64-bit seed: decimal, without leading zeros."""
    # Length first: a number of a million digits must not be converted just to be refused.
    plain = text.isascii() and text.isdigit() and len(text) <= 20
    return plain and str(int(text)) == text and int(text) < MAX_SEED
