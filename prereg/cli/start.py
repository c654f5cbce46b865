"""The program's first lines: an interruption that comes while its modules load ends it at once, quietly.

Only here, before anything else is imported, can that be said: an exception that is raised in the middle of an
import is a traceback, and some imports swallow it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

STOPPED = 130
"""Exit code after SIGINT and SIGTERM."""
REFUSED = 3
"""Exit code where the system refuses what a verb needs."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run() -> NoReturn:
    """Load the command line and run it."""
    take_signals()
    try:
        from prereg.cli.streams import settle_streams

        settle_streams()
        from prereg.cli.main import run as run_verb
    except MemoryError:
        _no_memory()
    except ImportError as error:
        # What the loader says of a library that finds no room.
        if "allocate memory" not in str(error) and "failed to map" not in str(error):
            raise
        _no_memory()
    run_verb()


def _no_memory() -> NoReturn:
    with contextlib.suppress(OSError):
        os.write(2, b"error: the system refuses: there is not enough memory\n")
        os.write(2, b"  next:  give it more (ulimit -v), and run the same command once more\n")
    os._exit(REFUSED)


def take_signals() -> None:
    """Let SIGINT and SIGTERM stop the program; one that was ignored when it began stays ignored."""
    for number in SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _stop)


def ignore_signals() -> None:
    """The program ends already: nothing more is to be stopped."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _stop(number: int, frame: FrameType | None) -> None:
    if _loading(frame):
        # As safe as `kill -9`, which every verb survives; what it had started dies with it.
        with contextlib.suppress(OSError):
            os.write(2, b"Stopped.\n")
        os._exit(STOPPED)
    raise KeyboardInterrupt


def _loading(frame: FrameType | None) -> bool:
    """Whether a module is being imported, or the program's own lines are not reached yet."""
    if "prereg.cli.main" not in sys.modules:
        return True
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
