"""A noun after its number."""

from __future__ import annotations


def plural(count: int, one: str, more: str | None = None) -> str:
    """`one` if it is 1 of them, else `more`, which is `one` with an s where it is left out."""
    return one if count == 1 else more or f"{one}s"
