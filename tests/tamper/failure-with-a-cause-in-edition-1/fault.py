"""A study of edition 1 has no causes: a program of that edition could not read them."""

from pathlib import Path
from types import ModuleType

import tries

AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = {"verify": "#/body/cause", "auditor": "ledger.jsonl"}


def apply(study: Path, tools: ModuleType) -> None:
    tries.entries(
        study,
        lambda found: tries.add(
            found, len(found) - 1, "unit-invalid", unit="main.fair.new", attempt=1, reason="x", cause="engine"
        ),
    )
