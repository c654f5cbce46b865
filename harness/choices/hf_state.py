"""The state of a user's own object as bytes: what must be the same when the same choices are made again."""

from __future__ import annotations

import inspect
import random
from typing import Any

import numpy as np
import torch

DEPTH = 12
"""Levels that are looked into; deeper ones count by their type."""


def hash_whole(hashed: Any, value: Any) -> None:
    """Add everything that `value` holds, and the data that its class holds.

    Data of a class outlive a request, which is what a replay is to find. What a module holds is left out:
    a memo of what was once computed is no state; if it does change a law, the replay's probabilities show it.
    """
    _Walk(hashed).value(value, DEPTH)
    for kind in type(value).__mro__[:-1]:
        data = {
            name: held
            for name, held in vars(kind).items()
            if not name.startswith("__")
            and not inspect.isroutine(held)
            and not inspect.isdatadescriptor(held)
            and not isinstance(held, type)
            and name != "_abc_impl"
        }
        _Walk(hashed).value(data, DEPTH)


class _Walk:
    """One walk over an object; what was met before counts by the order in which it was met."""

    __slots__ = ("_hashed", "_met")

    def __init__(self, hashed: Any) -> None:
        self._hashed = hashed
        # Kept alive, so that no id is given out twice during a walk.
        self._met: dict[int, tuple[int, Any]] = {}

    def value(self, value: Any, depth: int) -> None:
        self._say(type(value).__qualname__)
        if value is None or isinstance(value, bool | int | float | complex | str | bytes):
            self._say(repr(value))
            return
        if id(value) in self._met:
            self._say(f"again {self._met[id(value)][0]}")
            return
        self._met[id(value)] = (len(self._met), value)
        if isinstance(value, torch.Tensor):
            self._say(f"{value.dtype} {tuple(value.shape)}")
            # As bytes: not every type of torch's is one of numpy's.
            self._hashed.update(value.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
        elif isinstance(value, np.ndarray) and value.dtype != object:
            self._say(f"{value.dtype} {value.shape}")
            self._hashed.update(value.tobytes())
        elif isinstance(value, torch.Generator | np.random.RandomState):
            self.value(value.get_state(), depth)
        elif isinstance(value, np.random.Generator):
            self.value(value.bit_generator.state, depth)
        elif isinstance(value, random.Random):
            self.value(value.getstate(), depth)
        elif inspect.isroutine(value) or isinstance(value, type) or inspect.ismodule(value):
            self._say(getattr(value, "__qualname__", None) or value.__name__)
        elif depth and not isinstance(value, torch.nn.Module):
            self._inside(value, depth - 1)

    def _inside(self, value: Any, depth: int) -> None:
        if isinstance(value, dict):
            for key, held in value.items():
                self.value(key, depth)
                self.value(held, depth)
            self._say("end")
        elif isinstance(value, set | frozenset):
            # Sets of numbers and text have an order of their own; of anything else only the size is known.
            try:
                self.value(sorted(value), depth)
            except TypeError:
                self._say(str(len(value)))
        elif isinstance(value, list | tuple) or type(value).__name__ == "deque":
            for held in value:
                self.value(held, depth)
            self._say("end")
        attributes = self._attributes(value)
        for name, held in attributes.items():
            self._say(name)
            self.value(held, depth)
        if not attributes and " at 0x" not in (text := repr(value)):
            self._say(text)  # a counter, a range, a decimal: they show what they hold

    def _attributes(self, value: Any) -> dict[str, Any]:
        slots = [name for kind in type(value).__mro__ for name in _slots(kind)]
        found = {name: getattr(value, name) for name in slots if hasattr(value, name)}
        return found | dict(sorted(getattr(value, "__dict__", {}).items()))

    def _say(self, text: str) -> None:
        self._hashed.update(f"{len(text)}:{text}".encode("utf-8", "surrogatepass"))


def _slots(kind: type[Any]) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))
