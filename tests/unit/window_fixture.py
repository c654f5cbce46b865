"""A sampler in plain Python that a window can be put on, and its oracle."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from harness.adapters.base import Arm, Outcome, Prefix
from harness.choices.tree import Chooser, Row, Run, normalised

VOCAB, END, HORIZON = 4, 3, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    prefix: Prefix
    candidate: int | None


@dataclass(slots=True, kw_only=True)
class Decoder:
    """Samples token by token; a fault lets a later token reach back to the first."""

    seed: int
    reaches_back: bool = False
    ends_at: int | None = None
    """It ends after this first token as if that were an end token, which its return map does not know."""

    runs: int = 0
    trace: list[Any] | None = None
    prompt: tuple[int, ...] = (0,)

    def row(self, prefix: Prefix) -> Row:
        source = random.Random(f"{self.seed} {prefix}")
        row = normalised([source.random() + 0.05 for _ in range(VOCAB)])
        assert row is not None
        return row

    def run(self, chooser: Chooser) -> Run:
        self.runs += 1
        prefix: Prefix = ()
        while len(prefix) < HORIZON and (not prefix or prefix[-1] != END):
            note = Note(prefix=prefix, candidate=None)
            prefix = (*prefix, chooser.choose(self.row(prefix), "token", note))
            if prefix == (self.ends_at,):
                prefix = ()
                break
        if self.reaches_back and len(prefix) > 1 and prefix[1] == 0:
            prefix = (2, *prefix[1:])
        counters = {"proposals": 1, "verifications": 1, "accepted": 0}
        return Run(outcome=outcome(prefix), counters=counters, digest=repr(prefix))


def outcome(prefix: Prefix) -> Outcome:
    finish = "eos" if prefix and prefix[-1] == END else "length" if len(prefix) >= HORIZON else "other"
    return {"tokens": list(prefix), "finish": finish}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    decoder: Decoder
    horizon: int = HORIZON

    def rows(self, prefixes: Any) -> list[list[float]]:
        return [self.decoder.row(tuple(prefix)).tolist() for prefix in prefixes]

    def stops(self, prefixes: Any) -> list[bool]:
        return [prefix[-1] == END or len(prefix) >= HORIZON for prefix in prefixes]

    def outcome(self, prefix: Prefix) -> Outcome:
        return outcome(prefix)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    decoder: Decoder
    other_ends: tuple[int, ...] = ()

    def program(self, arm: Arm) -> Decoder:
        return self.decoder

    def vocabulary(self) -> dict[str, Any]:
        return {"size": VOCAB, "ends": [END, *self.other_ends]}

    def spell(self, tokens: Any) -> list[str]:
        return [f"<{token}>" for token in tokens]

    def kernel(self) -> Kernel:
        return Kernel(decoder=self.decoder)
