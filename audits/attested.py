"""What the stamps of heads say of the ledger: which of its lines, and whose heads, are older than when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

Outside = Callable[[str], datetime | None]
"""By a key (its fingerprint): the earliest time from outside that its signature is older than, if any."""


def never(key: str) -> datetime | None:
    """Nothing from outside says when a signature was made."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """A stamp of a head that holds (section 22)."""

    line: int
    """The line of the ledger, from 1, whose head was stamped."""
    key: str
    """The fingerprint of the key that signed the head."""
    time: datetime
    """``genTime``."""


@dataclass(frozen=True, slots=True)
class Attested:
    """The stamps that count, and what they attest."""

    stamps: tuple[Stamp, ...] = ()

    def line(self, line: int) -> datetime | None:
        """The earliest time that a line of the ledger is older than: stamps of its head and of later ones."""
        return min((stamp.time for stamp in self.stamps if stamp.line >= line), default=None)

    def head(self, line: int) -> Outside:
        """The same of the head of a line: only a stamp of a head that the same key signed tells of it.

        A later head by another key holds the line too, but not that its head was signed by then.
        """

        def outside(key: str) -> datetime | None:
            times = (stamp.time for stamp in self.stamps if stamp.line >= line and stamp.key == key)
            return min(times, default=None)

        return outside
