"""The law of the first few tokens of a longer request: a window on what one run returns.

A drafter proposes only where there is room for what it proposes, so the law of the first token must be taken
from a request that goes on. Choices past the window cannot matter to an engine that decodes from left to
right: they are filled, as rows past the first mismatch are, and the same check (`refill`) fills them
otherwise and has them walked if that changes anything. A run so decides its whole row, whatever the
vocabulary's size.

The outcome is cut to the window; `finish` is what the engine reported if it ended within it, else null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.adapters.base import Adapter, Arm, Kernel, Outcome, Prefix
from harness.choices.tree import Chooser, Program, Row, Run, Told
from harness.wire import BAD_REQUEST, JobError

CHOSEN = ("token", "residual", "bonus")
"""Kinds of choice that are tokens of the sequence."""

ENDED = ("eos", "stop")
"""Finish reasons that depend on nothing but the tokens before them."""


@dataclass(slots=True, kw_only=True)
class WindowChooser(Chooser):
    """Makes the choices within the window, and fills those past it."""

    size: int

    def choose(self, row: Row, kind: str, note: Any = None) -> int:
        """A choice if it is within the window (or everything shall be one), else a filling."""
        if self.expand or len(note.prefix) < self.size:
            return Chooser.choose(self, row, kind, note)
        return self.fill(row, note.candidate)


@dataclass(slots=True, kw_only=True)
class Window:
    """A program seen through a window; see `harness.choices.tree.Program`."""

    program: Any
    size: int
    finish: Callable[[Prefix], Outcome] | None
    """The return map, to tell the outcomes of siblings; None if there is none to ask."""

    def run(self, chooser: Chooser) -> Run:
        """Run the program; its choices past the window are filled and its outcome is cut."""
        inner = WindowChooser(
            prefix=chooser.prefix,
            exclude=chooser.exclude,
            likeliest=chooser.likeliest,
            expand=chooser.expand,
            variant=chooser.variant,
            points=chooser.points,
            size=self.size,
        )
        run: Run = self.program.run(inner)
        chooser.filled = inner.filled
        outcome = self._cut(run.outcome)
        return Run(
            outcome=outcome,
            counters=run.counters,
            digest=run.digest,
            siblings={} if chooser.expand else self._siblings(inner, outcome),
        )

    def _cut(self, whole: Mapping[str, Any]) -> Outcome:
        """The outcome cut to the window. An end token that was left out of it may stand past the window."""
        outcome = cut(whole, self.size)
        if self.finish is not None and outcome.get("finish") in ENDED and len(outcome["tokens"]) == self.size:
            reported = self.finish(tuple(outcome["tokens"]))["finish"]
            outcome["finish"] = reported if reported in ENDED else None
        return outcome

    def _siblings(self, chooser: Chooser, outcome: Mapping[str, Any]) -> Mapping[int, Mapping[str, Any]]:
        """Every other token at the window's last place: what follows it is past the window."""
        if not chooser.points or "tokens" not in outcome or self.finish is None:
            return {}
        last = chooser.points[-1]
        prefix: Prefix = tuple(last.note.prefix)
        if last.kind not in CHOSEN or len(prefix) != self.size - 1:
            return {}
        if tuple(outcome["tokens"]) != (*prefix, last.taken):
            return {}
        finish = self.finish

        def told(index: int) -> Outcome:
            tokens = (*prefix, index)
            # An engine may leave an end token out of what it returns.
            whole = finish(tokens)
            return whole if whole["finish"] in ENDED else {"tokens": list(tokens), "finish": None}

        return Told(last.row.nonzero()[0].tolist(), told)

    @property
    def prompt(self) -> tuple[int, ...]:
        """Tokens of the prompt."""
        return tuple(self.program.prompt)

    @property
    def random_state_changed(self) -> int:
        """Of the program: runs after which a global generator stood elsewhere."""
        return int(getattr(self.program, "random_state_changed", 0))

    @property
    def seeded(self) -> Callable[[int, bool], Mapping[str, Any]] | None:
        """Of the program: a request from a seed."""
        return getattr(self.program, "seeded", None)

    @property
    def trace(self) -> list[Any] | None:
        """Of the program: where processor calls are written down."""
        return getattr(self.program, "trace", None)

    @trace.setter
    def trace(self, value: list[Any] | None) -> None:
        self.program.trace = value

    @property
    def stops(self) -> list[Any] | None:
        """Of the program: where calls of stopping criteria are written down."""
        return getattr(self.program, "stops", None)

    @stops.setter
    def stops(self, value: list[Any] | None) -> None:
        if hasattr(self.program, "stops"):
            self.program.stops = value


@dataclass(slots=True, kw_only=True)
class WindowKernel:
    """A sequential kernel that ends with the window; see `harness.adapters.base.Kernel`."""

    kernel: Kernel
    horizon: int

    def rows(self, prefixes: Sequence[Prefix]) -> list[list[float]]:
        """The kernel's own rows."""
        return self.kernel.rows(prefixes)

    def stops(self, prefixes: Sequence[Prefix]) -> list[bool]:
        """At the window's end, or where the kernel stops."""
        if prefixes and len(prefixes[0]) >= self.horizon:
            return [True] * len(prefixes)
        return self.kernel.stops(prefixes)

    def outcome(self, prefix: Prefix) -> Outcome:
        """The cut outcome."""
        whole = self.kernel.outcome(prefix)
        if len(prefix) < self.horizon or whole.get("finish") in ENDED:
            return whole
        return {"tokens": list(prefix), "finish": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowAdapter:
    """The part of an adapter that the exact channel uses, seen through a window."""

    adapter: Any
    size: int

    def program(self, arm: Arm) -> Program:
        """The adapter's program, windowed; `JobError` if it has none."""
        make = getattr(self.adapter, "program", None)
        if make is None:
            raise JobError(BAD_REQUEST, "the random choices of this engine cannot be steered")
        try:
            finish: Callable[[Prefix], Outcome] | None = self.adapter.kernel().outcome
        except JobError:
            finish = None
        return Window(program=make(arm), size=self.size, finish=finish)

    def kernel(self) -> Kernel:
        """The adapter's kernel, windowed."""
        kernel = self.adapter.kernel()
        if self.size >= kernel.horizon:
            return kernel  # type: ignore[no-any-return]
        return WindowKernel(kernel=kernel, horizon=self.size)


def windowed(adapter: Adapter, size: int | None) -> Any:
    """The adapter seen through a window of `size` tokens; the adapter itself without one."""
    return adapter if size is None else WindowAdapter(adapter=adapter, size=size)


def cut(outcome: Mapping[str, Any], size: int) -> Outcome:
    """An outcome as far as the first `size` tokens tell."""
    tokens = outcome.get("tokens")
    if tokens is None or len(tokens) < size:
        return dict(outcome)
    ended = len(tokens) == size and outcome["finish"] in ENDED
    return {"tokens": list(tokens[:size]), "finish": outcome["finish"] if ended else None}
