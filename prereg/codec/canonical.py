"""Strict JSON in, RFC 8785 canonical JSON out, and digests (docs/formats.md section 1)."""

from __future__ import annotations

import hashlib
import json
import math
import unicodedata
from typing import Any, NoReturn

import rfc8785

from prereg.errors import VerificationFailed

Json = None | bool | int | float | str | list[Any] | dict[str, Any]

MAX_SAFE = 2**53 - 1
MAX_DEPTH = 64


class MalformedJson(VerificationFailed):
    """Bytes that are not JSON of our strict form."""


def digest(data: bytes) -> str:
    """SHA-256 of `data`, 64 lowercase hex digits."""
    return hashlib.sha256(data).hexdigest()


def dumps(value: Json) -> bytes:
    """The RFC 8785 bytes of `value`, without a newline. Raises MalformedJson for what JSON cannot hold."""
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, RecursionError, UnicodeError) as error:
        raise MalformedJson(f"the value has no canonical form: {error}") from None


def dump_file(value: Json) -> bytes:
    """The bytes of a machine file: canonical JSON and one newline."""
    return dumps(value) + b"\n"


def value_digest(value: Json) -> str:
    """SHA-256 of the canonical bytes of `value`."""
    return digest(dumps(value))


def loads(data: bytes, *, where: str) -> Json:
    """Parse strict JSON. Raises MalformedJson naming `where` for anything docs/formats.md refuses."""
    if data.startswith(b"\xef\xbb\xbf"):
        _refuse("starts with a byte order mark", where)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        hint = _crlf_hint(data)
        raise MalformedJson(f"not UTF-8 at byte {error.start}{hint}", where=where) from None
    _check_depth(text, where)
    try:
        value: Json = json.loads(
            text,
            object_pairs_hook=lambda pairs: _unique(pairs, where),
            parse_constant=lambda name: _refuse(f"{name} is not a JSON number", where),
            parse_float=lambda s: _float(s, where),
            parse_int=lambda s: _int(s, where),
        )
    except json.JSONDecodeError as error:
        raise MalformedJson(
            f"not JSON: {error.msg} at line {error.lineno} column {error.colno}{_crlf_hint(data)}",
            where=where,
        ) from None
    except RecursionError:
        _refuse("nested too deep", where)
    _check_strings(value, where)
    return value


def loads_machine(data: bytes, *, where: str) -> Json:
    """Parse a machine file: it must be byte for byte the canonical form and a newline."""
    value = loads(data, where=where)
    if dump_file(value) != data:
        raise MalformedJson(
            f"not in canonical form (RFC 8785 and one newline){_crlf_hint(data)}", where=where
        )
    return value


def _crlf_hint(data: bytes) -> str:
    return "; it has CRLF line ends, as a checkout with autocrlf makes them" if b"\r\n" in data else ""


def _refuse(what: str, where: str) -> NoReturn:
    raise MalformedJson(what, where=where)


def _unique(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in pairs:
        if key in out:
            _refuse(f"the key {key!r} stands twice in one object", where)
        out[key] = value
    return out


def _int(text: str, where: str) -> int:
    # A megabyte of digits must not reach int(): the length alone says that it is too large.
    if len(text) > 17 or abs(int(text)) > MAX_SAFE:
        _refuse(f"the integer {text[:24]} is past 2^53 - 1", where)
    return int(text)


def _float(text: str, where: str) -> float | int:
    value = float(text)
    if not math.isfinite(value):
        _refuse(f"the number {text[:24]} is not finite", where)
    if value.is_integer():
        if abs(value) > MAX_SAFE:
            _refuse(f"the integer {text[:24]} is past 2^53 - 1", where)
        return int(value)
    return value


def _check_depth(text: str, where: str) -> None:
    depth = 0
    in_string = False
    escaped = False
    for ch in text:
        if in_string:
            if escaped:
                escaped = False
            elif ch == "\\":
                escaped = True
            elif ch == '"':
                in_string = False
        elif ch == '"':
            in_string = True
        elif ch in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                _refuse(f"nested deeper than {MAX_DEPTH}", where)
        elif ch in "]}":
            depth -= 1


def _check_strings(value: Json, where: str) -> None:
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if not item.isascii():
                if any(0xD800 <= ord(ch) <= 0xDFFF for ch in item):
                    _refuse("a string has a lone surrogate", where)
                if not unicodedata.is_normalized("NFC", item):
                    _refuse(f"the string {item[:40]!r} is not in Unicode form NFC", where)
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, dict):
            stack.extend(item)
            stack.extend(item.values())
