"""SSH's wire types (RFC 4251 section 5), read from hostile bytes."""

from __future__ import annotations

import base64
import binascii
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


_PRIVATE = (b"-----BEGIN OPENSSH PRIVATE KEY-----", b"-----END OPENSSH PRIVATE KEY-----")
_PRIVATE_MAGIC = b"openssh-key-v1\0"


def public_of_private(data: bytes) -> bytes | None:
    """The public key in wire form that a private key file in OpenSSH's own form has in the clear.

    None for a file in another form. Nothing is decrypted (OpenSSH, PROTOCOL.key).
    """
    text = data.strip()
    if not text.startswith(_PRIVATE[0]) or not text.endswith(_PRIVATE[1]):
        return None
    try:
        inner = b"".join(text[len(_PRIVATE[0]) : -len(_PRIVATE[1])].split())
        reader = Reader(base64.b64decode(inner, validate=True))
        if reader.take(len(_PRIVATE_MAGIC)) != _PRIVATE_MAGIC:
            return None
        for _ in range(3):  # cipher, and how its key is made
            reader.string()
        return reader.string() if reader.number() == 1 else None
    except (Cut, binascii.Error):
        return None
