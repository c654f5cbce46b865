"""SIGINT and SIGTERM while a collection runs: they end it, cleanly and incomplete."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def caught_signals(stop: Callable[[], None]) -> Iterator[list[int]]:
    """Call `stop` on SIGINT and SIGTERM, and list those that came. Only the main thread can take them."""
    caught: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield caught
        return

    def handle(number: int, _frame: FrameType | None) -> None:
        caught.append(number)
        stop()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
