"""One thing that `prereg check` has to say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]
"""An error forbids the seal; a warning may be meant; a note says what something that was chosen means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that `check` has to say."""

    severity: Severity
    what: str
    where: str
    next_step: str | None = None
