"""When two outcomes are one: a hashable stand-in for canonical JSON."""

from __future__ import annotations

from prereg.model.law import Crashed, Decoded, JsonScalar, Outcome

Key = tuple[str, object, object]
"""A hashable stand-in for an outcome's canonical JSON."""


def key(outcome: Outcome) -> Key:
    """Two outcomes have equal keys exactly if their canonical JSON is equal.

    Python holds True == 1 and hashes them alike; JSON tells them apart, while 1 and 1.0 are one number.
    """
    if isinstance(outcome, Decoded):
        return ("tokens", outcome.tokens, outcome.finish)
    if isinstance(outcome, Crashed):
        return ("crash", outcome.crash, None)
    return ("value", *scalar(outcome.value))


def scalar(value: JsonScalar) -> tuple[str, JsonScalar]:
    """A JSON scalar with its type, as far as canonical JSON tells types apart."""
    if isinstance(value, bool):
        return ("boolean", value)
    return ("string", value) if isinstance(value, str) else ("number", value)
