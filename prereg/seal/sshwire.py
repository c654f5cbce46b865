"""SSH's wire types (RFC 4251 section 5), read from hostile bytes."""

from __future__ import annotations

from dataclasses import dataclass


class Cut(Exception):
    """The bytes are not the types that they should be; the message says how."""


def string(value: bytes) -> bytes:
    """A string: its length in four bytes, then itself."""
    return len(value).to_bytes(4, "big") + value


@dataclass(slots=True)
class Reader:
    """Takes one value after another. Raises Cut."""

    data: bytes
    at: int = 0

    def take(self, size: int) -> bytes:
        piece = self.data[self.at : self.at + size]
        if len(piece) != size:
            raise Cut("is cut off")
        self.at += size
        return piece

    def number(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def string(self) -> bytes:
        return self.take(self.number())

    def integer(self) -> int:
        """A positive mpint in its one shortest form."""
        raw = self.string()
        value = int.from_bytes(raw, "big", signed=True)
        if value <= 0 or raw != value.to_bytes(value.bit_length() // 8 + 1, "big"):
            raise Cut("holds a number that is not a positive mpint")
        return value

    def end(self) -> None:
        if self.at != len(self.data):
            raise Cut("has bytes after its end")
