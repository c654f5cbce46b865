"""The three streams of the program: whatever they are, the exit code tells how the verb ended.

What is said on stderr is for people, and is lost where nobody can take it: a closed stream, a full disk, a
reader that has gone. Output that was asked for, on stdout, must not be lost without a word.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys

from prereg.errors import EvidenceIncomplete

_STREAMS = (0, 1, 2)


class _Lossy(io.FileIO):
    """A file whose writes never fail: what it does not take is lost."""

    def write(self, data: object, /) -> int:
        view = memoryview(data)  # type: ignore[arg-type]
        try:
            done = super().write(view)
        except OSError:
            done = None
        return view.nbytes if done is None else done


def settle_streams() -> None:
    """Give every closed stream a place, so that no file of a study gets its number, and stderr no say."""
    for number in _STREAMS:
        try:
            os.fstat(number)
        except OSError:
            # Closed for writing: to write on what is open for reading alone fails, as it should for stdout.
            os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)
            os.set_inheritable(number, True)
    # What Python made None of.
    if sys.__stdin__ is None:
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    if sys.__stdout__ is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    encoding = "utf-8" if sys.__stderr__ is None else sys.__stderr__.encoding
    raw = _Lossy(2, "w", closefd=False)
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=encoding, errors="backslashreplace", line_buffering=True
    )


def put_out(text: str) -> None:
    """Write to stdout, at once; a reader that has gone misses it, and that changes nothing.

    Raises EvidenceIncomplete if it is closed or full.
    """
    try:
        if text:  # nothing, written to a full disk, fails too
            sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _give_up()
    except OSError as error:
        _give_up()
        raise EvidenceIncomplete(
            f"the system refuses the output: {error.strerror or error}",
            where="stdout",
            next_step="name a file or a program that can take it",
        ) from None


def _give_up() -> None:
    """Let what waits to be written go nowhere: it would fail once more when the program ends."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.stdout.flush()
