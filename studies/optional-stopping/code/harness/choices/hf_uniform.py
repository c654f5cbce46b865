"""Uniform numbers that have no value until they are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

BELOW = frozenset({"le", "lt", "__le__", "__lt__", "less", "less_equal"})
ABOVE = frozenset({"ge", "gt", "__ge__", "__gt__", "greater", "greater_equal"})
HARMLESS = frozenset({"__get__", "__len__", "dim", "size", "numel"})
"""Ask for no value."""


class UniformUsed(BaseException):
    """The engine did something with a uniform number that a choice cannot stand for.

    Not an `Exception`, so that the engine cannot take it for one of its own errors.
    """


class Uniforms(torch.Tensor):  # type: ignore[misc]
    """A tensor of uniforms on [0, 1). A comparison with thresholds asks `below` (real values if None).

    U <= t and U < t are one choice with chance min(1, max(0, t)): float32 uniforms are multiples of 2^-24,
    so the engine's own chance differs from that by at most 2^-24.
    """

    below: Callable[[Sequence[float]], list[bool]] | None

    @staticmethod
    def around(values: Any, below: Callable[[Sequence[float]], list[bool]] | None) -> Any:
        """`values` as uniforms; their numbers are used only if `below` is None."""
        uniforms = values.as_subclass(Uniforms)
        uniforms.below = below
        return uniforms

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Turn comparisons into choices; refuse everything else that would need a value."""
        name = func.__name__
        owner = next((arg for arg in args if isinstance(arg, Uniforms)), None)
        below = getattr(owner, "below", None)
        if owner is None or below is None:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        if name in HARMLESS:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        if (
            name not in BELOW | ABOVE
            or len(args) != 2
            or kwargs
            or all(isinstance(a, Uniforms) for a in args)
        ):
            raise UniformUsed(f"{name} on a uniform number")
        is_left = args[0] is owner
        threshold = args[1] if is_left else args[0]
        with torch._C.DisableTorchFunctionSubclass():
            shaped = torch.broadcast_to(torch.as_tensor(threshold), owner.shape)
        verdicts = below([float(value) for value in shaped.to(torch.float64).flatten().tolist()])
        result = torch.tensor(verdicts, dtype=torch.bool).reshape(shaped.shape)
        return result if (name in BELOW) == is_left else ~result
