"""Registered predictions: claims about verdicts (docs/formats.md section 11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ClaimChannel = Literal["draws", "exact", "records", "hypothesis"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictClaim:
    configuration: str
    in_: tuple[str, ...]
    """Verdicts that make the prediction true (JSON key `in`)."""
    channel: ClaimChannel = "draws"
    """Whose verdicts are meant."""
    kind: Literal["verdict"] = "verdict"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountClaim:
    configurations: tuple[str, ...]
    verdict: str
    at_least: int | None = None
    at_most: int | None = None
    channel: ClaimChannel = "draws"
    """Whose verdicts are meant."""
    kind: Literal["count"] = "count"


Claim = VerdictClaim | CountClaim


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    id: str
    statement: str
    claim: Claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictions:
    """predictions.json."""

    schema: Literal["prereg/predictions/v1"] = "prereg/predictions/v1"
    study: str
    predictions: tuple[Prediction, ...]
