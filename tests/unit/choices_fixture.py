"""A small speculative decoder in plain Python whose law is known, and faults to plant in it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.adapters.base import Arm
from harness.choices.tree import Chooser, Row, Run, normalised
from harness.oracle.naive import canonical
from harness.wire import UNSUPPORTED, JobError

VOCAB = 3
END = 2
HORIZON = 3
PROMPT = (0, 1, 0, 1)

FAULTS = ("buffer", "rollback", "stop-per-block", "acceptance")
MODEL_FAULTS = (*FAULTS, "residual")
"""Faults that only speculative sampling with a draft model can have."""


class Processor:
    """Damps a token by the parity of the prefix it is shown, and by the parity of the tokens it has seen."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def __call__(self, prefix: Sequence[int], row: Row) -> Row:
        row = row.copy()
        row[len(prefix) % 2] *= 0.25
        row[sum(self.seen) % 2] *= 0.5
        result = normalised(row)
        assert result is not None
        return result


def stopped(prefix: Sequence[int]) -> bool:
    """The end token, the stop sequence 0 1, or the horizon."""
    return len(prefix) >= HORIZON or tuple(prefix[-2:]) == (0, 1) or (bool(prefix) and prefix[-1] == END)


@dataclass(slots=True, kw_only=True)
class Engine:
    """Decodes sequentially, by sample-and-match with prompt lookup, or with a draft model."""

    seed: int
    mode: str = "off"
    """`off`, `lookup` or `model`."""

    fault: str | None = None
    leaks: bool = False
    """Processors outlive the request."""

    reuses: bool = False
    """Samples past the first mismatch become the next proposal: unusual, and right."""

    peeks: bool = False
    """A sample past the first mismatch replaces the mismatching one: wrong."""

    kept: Processor = field(default_factory=Processor)
    random_state_changed: int = 0

    def model(self, prefix: Sequence[int], name: str = "main") -> Row:
        """The next-token row of one of the two models."""
        source = random.Random(f"{self.seed} {name} {tuple(prefix)}")
        row = normalised([source.random() + 0.05 for _ in range(VOCAB)])
        assert row is not None
        return row

    def run(self, chooser: Chooser) -> Run:
        """One request."""
        processor = self.kept if self.leaks else Processor()
        prefix: tuple[int, ...] = ()
        proposals = accepted = 0
        spare: tuple[int, ...] = ()
        while not stopped(prefix):
            drafted: list[Row] = []
            candidate = spare or self._candidate(prefix, chooser, drafted)
            snapshot = list(processor.seen)
            rows = self._rows(processor, prefix, candidate)
            if drafted:
                tokens, matches = self._verify(chooser, candidate, drafted, rows)
                taken = tokens
            else:
                taken = chooser.block(rows, candidate, "token")
                matches = 0
                while matches < len(candidate) and taken[matches] == candidate[matches]:
                    matches += 1
                if self.peeks and matches + 1 < len(taken):
                    taken[matches] = taken[matches + 1]
                if self.fault == "acceptance" and matches < len(candidate):
                    taken[matches] = candidate[matches]
                tokens = taken[: matches + 1]
            spare = tuple(taken[matches + 1 : matches + 2]) if self.reuses else ()
            proposals, accepted = proposals + len(candidate), accepted + matches
            before = len(prefix)
            for token in tokens:
                prefix = (*prefix, token)
                if stopped(prefix) and (self.fault != "stop-per-block" or len(prefix) >= HORIZON):
                    break
            if self.fault == "rollback" and candidate:
                processor.seen = [*snapshot, *candidate]
            else:
                processor.seen = [*snapshot, *prefix[before:]]
        counters = {"proposals": proposals, "verifications": 0, "accepted": accepted}
        outcome: Mapping[str, Any] = {"tokens": list(prefix), "finish": None}
        return Run(outcome=outcome, counters=counters, digest=repr(processor.seen))

    def _candidate(self, prefix: tuple[int, ...], chooser: Chooser, drafted: list[Row]) -> tuple[int, ...]:
        room = HORIZON - len(prefix) - 1
        if self.mode == "lookup":
            text = (*PROMPT, *prefix)
            for at in range(len(text) - 2, -1, -1):
                if text[at] == text[-1]:
                    return text[at + 1 : at + 1 + min(2, room)]
        if self.mode == "model":
            candidate: tuple[int, ...] = ()
            for _ in range(min(2, room)):
                drafted.append(self.model((*prefix, *candidate), "drafter"))
                candidate = (*candidate, chooser.choose(drafted[-1], "drafter"))
            return candidate
        return ()

    def _rows(self, processor: Processor, prefix: tuple[int, ...], candidate: tuple[int, ...]) -> list[Row]:
        rows = []
        seen = processor.seen
        for at in range(len(candidate) + 1):
            logical = (*prefix, *candidate[:at])
            shown = (*prefix, *candidate) if self.fault == "buffer" else logical
            processor.seen = [*seen, *candidate[:at]]
            rows.append(processor(shown, self.model(logical)))
        processor.seen = seen
        return rows

    def _verify(
        self, chooser: Chooser, candidate: tuple[int, ...], drafted: list[Row], rows: list[Row]
    ) -> tuple[list[int], int]:
        chances = [
            min(1.0, float(p[token] / q[token]))
            for p, q, token in zip(rows, drafted, candidate, strict=False)
        ]
        verdicts = chooser.accepts(chances, "accept")
        matches = (*verdicts, False).index(False)
        if self.fault == "acceptance" and matches < len(candidate):
            matches += 1
        p = rows[matches]
        if matches < len(candidate) and self.fault != "residual":
            rest = normalised(np.maximum(p - drafted[matches], 0.0))
            assert rest is not None
            p = rest
        kind = "residual" if matches < len(candidate) else "bonus"
        return [*candidate[:matches], chooser.choose(p, kind)], matches


def sequential(seed: int) -> dict[str, float]:
    """The law of sequential decoding, straight from its definition."""
    engine, law = Engine(seed=seed), {}

    def walk(prefix: tuple[int, ...], mass: float) -> None:
        if stopped(prefix):
            law[canonical({"tokens": list(prefix), "finish": None})] = mass
            return
        processor = Processor()
        processor.seen = list(prefix)
        row = processor(prefix, engine.model(prefix))
        for token in range(VOCAB):
            walk((*prefix, token), mass * float(row[token]))

    walk((), 1.0)
    return law


def distance(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    """Total variation."""
    return sum(abs(a.get(key, 0.0) - b.get(key, 0.0)) for key in a.keys() | b.keys()) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """An adapter around two engines."""

    off: Engine
    on: Engine

    def program(self, arm: Arm) -> Engine:
        return self.on if arm.speculation else self.off

    def kernel(self) -> Any:
        raise JobError(UNSUPPORTED, "no oracle")


def bench(seed: int, mode: str, **change: Any) -> Any:
    """Both arms of one model; `change` goes to the on arm."""
    return Bench(off=Engine(seed=seed), on=Engine(seed=seed, mode=mode, **change))


def seeds(count: int) -> Iterator[int]:
    """The first `count` seeds."""
    yield from range(count)
