"""Faults in what a study of edition 2 seals of its mechanisms and of the records beside its tokens."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import forge


def resealed(study: Path, change: Callable[[dict[str, Any]], Any], who: str = "ada") -> None:
    """Change what `events.json` has of the drawn configuration, and seal it by a key."""
    value = json.loads((study / "events.json").read_bytes())
    change(value["configurations"]["same"])
    forge.sealed_file(study, "events.json", json.dumps(value).encode(), who)
