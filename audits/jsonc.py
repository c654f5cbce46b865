"""Strict JSON: one parser that refuses what two readers could read differently, and RFC 8785 bytes."""

from __future__ import annotations

import json
import math
import unicodedata
from typing import Any, NoReturn

from audits.fault import Fault

MAX_INT = 2**53 - 1
"""The largest magnitude of an integer."""
MAX_DEPTH = 64
"""The deepest nesting of arrays and objects."""

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_ESCAPES |= {chr(c): f"\\u{c:04x}" for c in range(0x20) if chr(c) not in _ESCAPES}
_TABLE = str.maketrans(_ESCAPES)


class JsonFault(Fault):
    """Bytes that are not strict JSON, or a value that has no canonical form."""


def _constant(text: str) -> NoReturn:
    raise JsonFault(f"{text} is not a JSON number")


def _integer(text: str) -> int:
    if not text.isascii() or len(text) > 17 or abs(value := int(text)) > MAX_INT:
        raise JsonFault(f"integer {text[:24]} is beyond 2^53 - 1")
    return value


def _decimal(text: str) -> int | float:
    if not text.isascii():
        raise JsonFault("a number has characters other than ASCII digits")
    value = float(text)
    if not math.isfinite(value):
        raise JsonFault(f"number {text[:24]} overflows")
    if not value.is_integer():
        return value
    if abs(value) > MAX_INT:
        raise JsonFault(f"number {text[:24]} is an integer beyond 2^53 - 1")
    return int(value)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise JsonFault(f"duplicate key {key!r}")
            seen.add(key)
    return value


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_decimal, parse_int=_integer, parse_constant=_constant, strict=True
)


def _check_text(text: str, pointer: str) -> None:
    if text.isascii():
        return
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise JsonFault("a lone surrogate", pointer=pointer)
    if not unicodedata.is_normalized("NFC", text):
        raise JsonFault("a string that is not NFC", pointer=pointer)


def escape_pointer(key: str) -> str:
    """One reference token of a JSON pointer, safe to print."""
    return key.replace("~", "~0").replace("/", "~1").encode("ascii", "backslashreplace").decode("ascii")


def _check(root: Any) -> None:
    stack: list[tuple[Any, str, int]] = [(root, "", 1)]
    while stack:
        value, pointer, depth = stack.pop()
        if isinstance(value, str):
            _check_text(value, pointer)
        elif isinstance(value, (list, dict)):
            if depth > MAX_DEPTH:
                raise JsonFault(f"nesting deeper than {MAX_DEPTH}", pointer=pointer)
            if isinstance(value, list):
                stack += [(item, f"{pointer}/{i}", depth + 1) for i, item in enumerate(value)]
                continue
            for key, item in value.items():
                _check_text(key, pointer)
                stack.append((item, f"{pointer}/{escape_pointer(key)}", depth + 1))


def parse(data: bytes) -> Any:
    """The value of one strict JSON text; raises only ``JsonFault``, whatever the bytes."""
    if data.startswith(b"\xef\xbb\xbf"):
        raise JsonFault("begins with a byte order mark")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JsonFault(f"not UTF-8 at byte {error.start}") from None
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise JsonFault(f"nesting deeper than {MAX_DEPTH}") from None
    except json.JSONDecodeError as error:
        raise JsonFault(f"not JSON: {error.msg} at line {error.lineno} column {error.colno}") from None
    _check(value)
    return value


def number(value: int | float) -> str:
    """A number as ECMAScript writes it, the shortest digits that read back the same."""
    if isinstance(value, int):
        if abs(value) > MAX_INT:
            raise JsonFault(f"integer {value} is beyond 2^53 - 1")
        return str(value)
    if not math.isfinite(value):
        raise JsonFault("a number that is not finite")
    if value == 0:
        return "0"
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(digits) - len(fraction) + int(exponent or 0)
    digits = digits.rstrip("0")
    sign = "-" if value < 0 else ""
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{point - 1:+d}"


def read_number(text: bytes) -> int | float | None:
    """The number behind its canonical bytes; None if they are not those of one."""
    try:
        value = float(text)
        # Between 1e-4 and 1e16 Python writes a fraction as ECMAScript does.
        if b"." in text and b"e" not in text and repr(value).encode() == text and not value.is_integer():
            return value
        plain = int(value) if value.is_integer() else value
        return plain if number(plain).encode() == text else None
    except (ValueError, OverflowError, JsonFault):
        return None


def _string(text: str) -> str:
    _check_text(text, "")
    return f'"{text.translate(_TABLE)}"'


def _utf16(item: tuple[str, Any]) -> bytes:
    return item[0].encode("utf-16-be", "surrogatepass")


def _write(value: Any, depth: int) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, (int, float)):
        return number(value)
    if depth > MAX_DEPTH:
        raise JsonFault(f"nesting deeper than {MAX_DEPTH}")
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(_write(item, depth + 1) for item in value) + "]"
    if isinstance(value, dict):
        items = sorted(value.items(), key=_utf16)
        return "{" + ",".join(f"{_string(k)}:{_write(v, depth + 1)}" for k, v in items) + "}"
    raise JsonFault(f"a {type(value).__name__} has no JSON form")


def canonical(value: Any) -> bytes:
    """The RFC 8785 bytes of a value."""
    return _write(value, 1).encode("utf-8")


def parse_machine(data: bytes) -> Any:
    """The value of a machine file: canonical bytes and one newline, byte for byte."""
    value = parse(data)
    if canonical(value) + b"\n" != data:
        hint = " (line ends were converted to CRLF)" if data.endswith(b"\r\n") else ""
        raise JsonFault(f"not RFC 8785 canonical bytes and one newline{hint}")
    return value
