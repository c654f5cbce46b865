"""Writes to the two streams and the report's file, whatever they are: closed, full, a pipe nobody reads."""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress
from pathlib import Path


def plain(text: str) -> str:
    """Text of the evidence, made safe to print on a terminal: one line without control characters."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def hold_streams() -> None:
    """Put nothing where a standard stream is closed, or the next file that is opened takes its place."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            with suppress(OSError):
                os.open(os.devnull, os.O_RDWR)


def tell(text: str) -> None:
    """Write to the standard error; that it cannot be written is nobody's concern."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        # What is left in it would be written once more at the end, and make the exit code 120.
        sys.stderr = io.StringIO()


def put(data: bytes) -> None:
    """Write to the standard output; raises ``OSError`` where it cannot be written."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    try:
        if isinstance(sys.stdout, io.StringIO):  # whoever called the auditor in this process reads it there
            sys.stdout.write(data.decode("utf-8", "backslashreplace"))
            return
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except (OSError, ValueError) as error:
        sys.stdout = io.StringIO()
        number = getattr(error, "errno", None) or errno.EBADF
        raise OSError(number, os.strerror(number)) from None


def put_text(text: str) -> None:
    """Write text to the standard output, in escapes what its encoding has no signs for; raises as ``put``."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    put(text.encode(encoding, "backslashreplace"))


def store(path: Path, data: bytes) -> None:
    """Write a file, or into what is there and can be written to; raises ``OSError`` where it cannot.

    A pipe that nobody reads is an error at once.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o666)
    os.set_blocking(descriptor, True)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
