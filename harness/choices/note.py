"""What a program writes down for later: where each choice was made, and what each processor was shown."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Where in the request a choice was made."""

    prefix: tuple[int, ...]
    """Tokens after the prompt that precede this choice, if the engine does with them as it should."""

    candidate: int | None
    """The proposed token at this place, if any."""

    row: int
    """Which row of its block."""

    rows: int
    """How many rows of the block had been processed when this one was sampled."""

    calls: int
    """How many processor calls had been made when the block was sampled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of one processor (kept only while tracing)."""

    model: str
    """`main`, or `drafter` for a draft model's own chain."""

    phase: str
    """`propose` while candidates were looked for, else `verify`."""

    processor: str
    tokens: tuple[int, ...]
    """What it was shown after the prompt; if that is not a continuation of the prompt, everything."""

    continues: bool
    committed: int
    """How many tokens after the prompt were committed when it was called."""
