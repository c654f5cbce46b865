"""Step 11, section 21: what a decision of edition 3 has besides, and what a ceiling leaves open."""

from __future__ import annotations

from typing import Any

from audits.records import Records
from audits.study import Study

Json = dict[str, Any]
CEILING = ["ceiling"]
"""The reasons of a verdict that a ceiling left open."""


def add_third(study: Study, records: Records, pair: tuple[str, str], row: Json) -> None:
    """Complete the decision on a configuration whose two units of this channel are ``pair``."""
    if study.edition < 3:
        return
    arms = dict(zip(("off", "on"), pair, strict=True))
    row["attempts"] = {arm: records.attempts[unit] for arm, unit in arms.items()}
    row["duplicates"] = {arm: records.duplicates[unit] for arm, unit in arms.items()}
    asked = study.protocol["ceilings"]["on_ceiling"] == "INCONCLUSIVE"
    lost = {unit for unit in pair if unit in records.lost}
    if asked and row["verdict"] == "INVALID" and lost <= records.stopped:
        row |= {"verdict": "INCONCLUSIVE", "reasons": [*CEILING]}


def consequent(row: Json) -> str:
    """The verdict from which the rest follows: a configuration that a ceiling left open is a lost one."""
    return "INVALID" if row["reasons"] == CEILING else str(row["verdict"])
