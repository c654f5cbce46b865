"""What an installed engine offers a sweep, and the tables of what the sweep tries: `<adapter>.json`.

The standard library is all this needs; an engine's own module is imported by name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from harness.wire import UNSUPPORTED, JobError


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """The names of what an installed engine can do, as the engine itself gives them."""

    engine: str
    version: str
    settings: tuple[str, ...]
    """Parameters of a request."""

    arguments: tuple[str, ...]
    """Parameters of the call that makes a request, besides the settings."""

    processors: tuple[str, ...]
    """Classes that the engine makes for a request to change its probabilities."""

    criteria: tuple[str, ...]
    """Classes that the engine makes for a request to end it."""


def features(adapter: str) -> dict[str, Any]:
    """What the engine of `adapter` offers, as JSON; `JobError` (unsupported) if that cannot be told."""
    try:
        module = importlib.import_module(f"harness.sweep.{adapter}")
    except ImportError as error:
        raise JobError(UNSUPPORTED, f"no features are known of adapter {adapter!r} ({error})") from error
    offered: Callable[[], Offered] = module.offered
    return asdict(offered())
