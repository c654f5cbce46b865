"""A small strict DER reader (X.690): bounded size and depth, one encoding a value, nothing left over."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from audits.fault import Fault

MAX_SIZE = 1 << 16
"""The most bytes of one encoding; time-stamp tokens have some thousands."""
MAX_DEPTH = 32
"""The deepest nesting; a certificate in a token in a response needs some fifteen."""
BOOLEAN, INTEGER, BITS, OCTETS, NULL, OID, TIME = 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x18
SEQUENCE, SET = 0x30, 0x31


class DerFault(Fault):
    """Bytes that are not strict DER, or not of the form that is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One value as it was encoded."""

    tag: int
    """The identifier octet: class, constructed or primitive, and number."""
    raw: bytes
    """The whole encoding."""
    content: bytes
    children: tuple[Node, ...] = ()
    """The values inside, of a constructed one."""

    def sequence(self, tag: int = SEQUENCE) -> Reader:
        """Read the values inside, in order."""
        return Reader(self, tag)

    def oid(self) -> str:
        """An object identifier, dotted."""
        _want(self, OID, "an object identifier")
        arcs, value, fresh = list[int](), 0, True
        for octet in self.content:
            if fresh and octet == 0x80:
                raise DerFault("an object identifier with a padded arc")
            value, fresh = (value << 7) | (octet & 0x7F), octet < 0x80
            if fresh:
                arcs.append(value)
                value = 0
        if not fresh or not arcs:
            raise DerFault("an object identifier that is cut short")
        first = min(arcs[0] // 40, 2)
        return ".".join(map(str, [first, arcs[0] - 40 * first, *arcs[1:]]))

    def integer(self) -> int:
        """An integer of any size."""
        _want(self, INTEGER, "an integer")
        padded = len(self.content) > 1 and self.content[0] in (0, 0xFF)
        if not self.content or (padded and (self.content[0] ^ self.content[1]) < 0x80):
            raise DerFault("an integer that is empty or padded")
        return int.from_bytes(self.content, "big", signed=True)

    def boolean(self) -> bool:
        """A boolean."""
        _want(self, BOOLEAN, "a boolean")
        if self.content not in (b"\x00", b"\xff"):
            raise DerFault("a boolean that is neither 00 nor FF")
        return self.content == b"\xff"

    def octets(self) -> bytes:
        """The bytes of an octet string."""
        _want(self, OCTETS, "an octet string")
        return self.content

    def time(self) -> datetime:
        """A GeneralizedTime as DER has it: UTC, with seconds; what is below a microsecond is dropped."""
        _want(self, TIME, "a GeneralizedTime")
        whole, point, fraction = self.content[:-1].partition(b".")
        plain = len(whole) == 14 and whole.isdigit() and self.content.endswith(b"Z")
        if not plain or (point and (not fraction.isdigit() or fraction.endswith(b"0"))):
            raise DerFault("a GeneralizedTime that is not DER: YYYYMMDDhhmmss, a fraction without final 0, Z")
        try:
            moment = datetime.strptime(whole.decode("ascii"), "%Y%m%d%H%M%S")
        except ValueError:
            raise DerFault("a GeneralizedTime that is no moment") from None
        return moment.replace(microsecond=int(fraction[:6].ljust(6, b"0")), tzinfo=UTC)


class Reader:
    """Takes the values inside a constructed one by one, so that nothing stays unread."""

    def __init__(self, node: Node, tag: int) -> None:
        """Refuses a value with another tag."""
        _want(node, tag, "a sequence or set")
        self._left = list(node.children)

    def take(self) -> Node:
        """The next value, whatever it is."""
        if not self._left:
            raise DerFault("a structure ends too early")
        return self._left.pop(0)

    def optional(self, *tags: int) -> Node | None:
        """The next value if it has one of these tags."""
        return self._left.pop(0) if self._left and self._left[0].tag in tags else None

    def rest(self) -> list[Node]:
        """All that is left."""
        left, self._left = self._left, []
        return left

    def end(self) -> None:
        """Refuse anything left."""
        if self._left:
            raise DerFault(f"a structure has an unexpected value (tag {self._left[0].tag:#04x})")


def _want(node: Node, tag: int, name: str) -> None:
    if node.tag != tag:
        raise DerFault(f"tag {node.tag:#04x} where {name} ({tag:#04x}) belongs")


def parse(data: bytes) -> Node:
    """The one value that the bytes encode; raises only ``DerFault``, whatever the bytes."""
    if len(data) > MAX_SIZE:
        raise DerFault(f"larger than the {MAX_SIZE} bytes that DER may have here")
    node, end = _parse(data, 0, len(data), 1)
    if end != len(data):
        raise DerFault("bytes after the end of the DER value")
    return node


def _parse(data: bytes, at: int, limit: int, depth: int) -> tuple[Node, int]:
    """The value at a place, and where it ends; it may not go beyond ``limit``."""
    if depth > MAX_DEPTH:
        raise DerFault(f"DER nested deeper than {MAX_DEPTH}")
    if limit - at < 2:
        raise DerFault("a DER value is cut short")
    tag, length, start = data[at], data[at + 1], at + 2
    if tag & 0x1F == 0x1F:
        raise DerFault("a DER tag number above 30")
    if tag < 0x40 and (tag & 0x1F in (0x10, 0x11)) != (tag >= 0x20):
        raise DerFault(f"tag {tag:#04x} is not DER: only sequences and sets are constructed")
    if length >= 0x80:
        octets = data[start : min(limit, start + (length & 0x7F))]
        if not 1 <= length & 0x7F <= 3 or len(octets) != length & 0x7F:
            raise DerFault("a DER length that is indefinite, too long or cut short")
        length, start = int.from_bytes(octets, "big"), start + len(octets)
        if octets[0] == 0 or length < 0x80:
            raise DerFault("a DER length that is padded")
    end = start + length
    if end > limit:
        raise DerFault("a DER value is cut short")
    children = []
    if tag & 0x20:
        inside = start
        while inside < end:
            child, inside = _parse(data, inside, end, depth + 1)
            children.append(child)
    return Node(tag=tag, raw=data[at:end], content=data[start:end], children=tuple(children)), end
