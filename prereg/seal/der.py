"""DER (X.690), read strictly from hostile bytes: definite lengths in their shortest form, nothing after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

BOOLEAN, INTEGER, OCTETS, NULL, OID = 0x01, 0x02, 0x04, 0x05, 0x06
UTF8, GENERALIZED_TIME, SEQUENCE, SET = 0x0C, 0x18, 0x30, 0x31


class NotDer(Exception):
    """The bytes are not what they should be; the message says how."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One value: its tag, its content, and all of its bytes."""

    tag: int
    content: bytes
    whole: bytes

    def expect(self, tag: int, what: str) -> Value:
        """This value, if it has that tag."""
        if self.tag != tag:
            _bad(f"{what} has tag {self.tag:#04x}, not {tag:#04x}")
        return self

    def parts(self, tag: int, what: str) -> Parts:
        """What lies in this value, if it has that tag."""
        self.expect(tag, what)
        return Parts(rest=self.content, what=what)

    def integer(self, what: str) -> int:
        data = self.expect(INTEGER, what).content
        if not data or (len(data) > 1 and data[0] in (0, 0xFF) and (data[0] ^ data[1]) < 0x80):
            _bad(f"{what} is no integer in its shortest form")
        return int.from_bytes(data, "big", signed=True)

    def boolean(self, what: str) -> bool:
        data = self.expect(BOOLEAN, what).content
        if data not in (b"\x00", b"\xff"):
            _bad(f"{what} is no boolean")
        return data == b"\xff"

    def oid(self, what: str) -> str:
        data = self.expect(OID, what).content
        if not data or data[-1] & 0x80:
            _bad(f"{what} is no object identifier")
        numbers, number, fresh = [], 0, True
        for byte in data:
            if fresh and byte == 0x80:
                _bad(f"{what} is no object identifier in its shortest form")
            number, fresh = number << 7 | byte & 0x7F, not byte & 0x80
            if fresh:
                numbers.append(number)
                number = 0
        first = min(numbers[0] // 40, 2)
        return ".".join(str(n) for n in (first, numbers[0] - 40 * first, *numbers[1:]))

    def octets(self, what: str) -> bytes:
        return self.expect(OCTETS, what).content


@dataclass(slots=True, kw_only=True)
class Parts:
    """The values of a sequence or set, taken one after another."""

    rest: bytes
    what: str

    def take(self) -> Value:
        """The next value. Raises NotDer if there is none."""
        value, self.rest = _split(self.rest, self.what)
        return value

    def optional(self, tag: int) -> Value | None:
        """The next value if it has that tag."""
        return self.take() if self.rest[:1] == bytes([tag]) else None

    def all(self) -> list[Value]:
        """Every value that is left."""
        found = []
        while self.rest:
            found.append(self.take())
        return found

    def end(self) -> None:
        """Raises NotDer if something is left."""
        if self.rest:
            _bad(f"{self.what} has more in it than it may")


def read(data: bytes, what: str) -> Value:
    """The one value that the bytes are. Raises NotDer."""
    value, rest = _split(data, what)
    if rest:
        _bad(f"{what} has bytes after its end")
    return value


def _split(data: bytes, what: str) -> tuple[Value, bytes]:
    if len(data) < 2:
        _bad(f"{what} is cut off")
    tag, size, at = data[0], data[1], 2
    if tag & 0x1F == 0x1F:
        _bad(f"{what} has a tag of several bytes")
    if size >= 0x80:
        count = size & 0x7F
        if not 1 <= count <= 4:
            _bad(f"{what} has no definite length")
        long, at = data[2 : 2 + count], 2 + count
        size = int.from_bytes(long, "big")
        if len(long) != count or long[0] == 0 or size < 0x80:
            _bad(f"{what} has a length that is cut off or not in its shortest form")
    if len(data) < at + size:
        _bad(f"{what} is cut off")
    return Value(tag=tag, content=data[at : at + size], whole=data[: at + size]), data[at + size :]


def _bad(what: str) -> NoReturn:
    raise NotDer(what)
