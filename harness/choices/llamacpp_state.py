"""What a processor or criterion holds, as bytes: the same again if the same choices are made again."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

DEPTH = 8
"""Levels that are looked into; deeper ones count by their type."""


def hash_object(hashed: Any, held: Any) -> None:
    """Add what an object holds, and the data of its class: those outlive a request, which is to be found."""
    _value(hashed, vars(held) if hasattr(held, "__dict__") else {}, DEPTH)
    for kind in type(held).__mro__[:-1]:
        data = {
            name: value
            for name, value in vars(kind).items()
            if not name.startswith("_")
            and not inspect.isroutine(value)
            and not inspect.isdatadescriptor(value)
            and not isinstance(value, type)
        }
        _value(hashed, data, DEPTH)


def _value(hashed: Any, value: Any, depth: int) -> None:
    hashed.update(type(value).__qualname__.encode() + b"\0")
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        hashed.update(repr(value).encode() + b"\0")
    elif isinstance(value, np.ndarray) and value.dtype != object:
        hashed.update(f"{value.dtype} {value.shape}".encode() + value.tobytes())
    elif depth == 0:
        return
    elif isinstance(value, Mapping):
        for key, member in value.items():
            _value(hashed, key, depth - 1)
            _value(hashed, member, depth - 1)
    elif isinstance(value, set | frozenset):
        hashed.update(repr(sorted(map(repr, value))).encode())
    elif isinstance(value, list | tuple) or type(value).__name__ == "deque":
        for member in value:
            _value(hashed, member, depth - 1)
    elif hasattr(value, "__dict__"):
        _value(hashed, vars(value), depth - 1)
