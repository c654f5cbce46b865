"""What every engine's adapter offers, and how one is loaded by name.

The standard library is all this needs: a build without any engine (`builds/plain`) loads it too.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from harness.wire import BAD_REQUEST, UNSUPPORTED, JobError

Outcome: TypeAlias = dict[str, Any]
"""What the caller sees of one draw, as the record format spells it (`docs/formats.md`, section 7)."""

Prefix: TypeAlias = tuple[int, ...]
"""Committed tokens after the prompt."""

Entry: TypeAlias = dict[str, Any]
"""What the engine told of one position beside its token: `tokens`, ascending, and a value for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """How much speculation a draw exercised. All zero without a drafter."""

    proposals: int = 0
    """Proposed tokens that reached verification."""

    verifications: int = 0
    """Verification steps with a nonempty proposal."""

    accepted: int = 0
    """Proposed tokens that stand in what was committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One draw: what came back, and what it took."""

    outcome: Outcome
    counters: Counters
    record: list[Entry] | None = None
    """An entry for each position that the engine told of; None where the configuration asks for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One request by what can be seen from outside it, for a comparison with and without observers."""

    outcome: Outcome
    record: list[Entry] | None
    calls: int
    """Calls of the model, or tokens that it evaluated where its engine counts those."""

    state: str
    """Digest of what the engine held when the request was over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """The part of an arm that the engine side needs."""

    id: str
    role: str
    speculation: bool


class Kernel(Protocol):
    """The sequential kernel of one configuration, built from the engine's own parts.

    `harness.oracle` enumerates the law from these; the adapter conditions (A1) to (A4) are the
    implementer's to keep: the sampler's own settings, processors fresh from the engine's factory and
    replayed along each prefix, and the engine's own stopping rule without speculation.
    """

    horizon: int
    """No prefix is ever longer than this."""

    def rows(self, prefixes: Sequence[Prefix]) -> list[list[float]]:
        """Next-token probabilities, one row of V float64 for each of the n prefixes, all of one length."""
        ...

    def stops(self, prefixes: Sequence[Prefix]) -> list[bool]:
        """Whether generation has ended at each of the n nonempty prefixes, all of one length."""
        ...

    def outcome(self, prefix: Prefix) -> Outcome:
        """What the caller sees when generation ends here: the return map."""
        ...


class Adapter(Protocol):
    """One engine, holding at most one open configuration."""

    def open(
        self,
        configuration: Mapping[str, Any],
        model: Mapping[str, Any] | None,
        prompt: Sequence[int] | None,
        cwd: str | None,
    ) -> str | None:
        """Prepare a configuration; return the digest of its weights and config, or None without a model.

        Raises `JobError` (bad-request, unsupported) and leaves nothing open then.
        """
        ...

    def draws(self, arm: Arm, seed: str, rows: int) -> list[Draw]:
        """Make one request of `rows` draws from a 64-bit decimal seed.

        An exception of the engine is the outcome of all rows, `{"crash": type name}`. Raises `JobError` for
        an arm or a number of rows that this engine cannot do, before it calls the engine.
        """
        ...

    def kernel(self) -> Kernel:
        """The sequential kernel of the open configuration; `JobError` (unsupported) if it has none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Where an adapter lives and how its engine is installed."""

    module: str
    factory: str
    install: str


ENGINES: Mapping[str, Engine] = {
    "hf": Engine(
        module="harness.adapters.hf",
        factory="HfAdapter",
        install="install harness/builds/hf-5.17.0 (requirements.lock, then what it leaves unhashed)",
    ),
    "llamacpp": Engine(
        module="harness.adapters.llamacpp",
        factory="LlamaCppAdapter",
        install="prereg build lcp-0.3.35 (it compiles the engine once)",
    ),
    "command": Engine(
        module="harness.adapters.command",
        factory="CommandAdapter",
        install="nothing but Python is needed: harness/ is incomplete",
    ),
}


def load(name: str) -> Adapter:
    """Import the adapter called `name` and make one; `JobError` names the way to install a missing engine."""
    engine = ENGINES.get(name)
    if engine is None:
        raise JobError(BAD_REQUEST, f"no adapter {name!r}; there are: {', '.join(sorted(ENGINES))}")
    try:
        factory = getattr(importlib.import_module(engine.module), engine.factory)
    except ImportError as error:
        raise JobError(
            UNSUPPORTED, f"adapter {name!r} cannot be loaded ({error}): {engine.install}"
        ) from error
    adapter: Adapter = factory()
    return adapter


def offered(adapter: Adapter | Kernel, name: str) -> Any:
    """A method that an adapter (or kernel) may have or not; `JobError` (unsupported) if it has not.

    `tokenize(model, text)`: the token ids of a text. `vocabulary()`: `size` and `ends` of the open model's.
    `spell(tokens)`: the text of each token. `repeatability()`: the largest total variations of two rows
    of the open model after the same prefix, evaluated in different ways: after the `prompt`, and `later`.
    """
    method = getattr(adapter, name, None)
    if method is None:
        raise JobError(UNSUPPORTED, f"{type(adapter).__name__} has no {name}()")
    return method


def crash(error: Exception, rows: int, counters: Counters, records: bool = False) -> list[Draw]:
    """The draws of a request whose engine raised: the type's name, and what was counted until then.

    Whatever it would have told of its positions is lost with it: with `records` there are no entries.
    """
    outcome = {"crash": type(error).__name__}
    return [Draw(outcome=outcome, counters=counters, record=[] if records else None) for _ in range(rows)]
