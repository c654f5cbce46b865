"""Whether the registered predictions held (docs/formats.md section 11).

A lost unit is bounded, not ignored: an INVALID configuration could have had any other verdict of its rule,
and a prediction is settled only if every completion settles it alike. A claim that names INVALID speaks of
the loss itself, so there INVALID stands for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from prereg.codec.study_files import VERDICTS
from prereg.model.study import Claim, CountClaim, Study, VerdictClaim
from prereg.model.verdict import Decision, PredictionStatus, Status


def completions(decision: Decision) -> frozenset[str]:
    """The verdicts that a configuration has, or could have had if it is INVALID."""
    if decision.verdict != "INVALID":
        return frozenset((decision.verdict,))
    return frozenset(VERDICTS[decision.rule]) - {"INVALID"}


def status_of(claim: Claim, decisions: Mapping[str, Decision]) -> Status:
    """Judge one claim. Raises KeyError for a configuration without a decision."""
    if isinstance(claim, VerdictClaim):
        decision = decisions[claim.configuration]
        if decision.verdict in claim.in_:
            return "HELD"
        return _settle([verdict in claim.in_ for verdict in completions(decision)])
    if isinstance(claim, CountClaim):
        sure = possible = 0
        for name in claim.configurations:
            decision = decisions[name]
            options = frozenset((decision.verdict,)) if claim.verdict == "INVALID" else completions(decision)
            possible += claim.verdict in options
            sure += options == {claim.verdict}
        low = 0 if claim.at_least is None else claim.at_least
        high = len(claim.configurations) if claim.at_most is None else claim.at_most
        return _settle([low <= total <= high for total in range(sure, possible + 1)])
    assert_never(claim)


def _settle(outcomes: list[bool]) -> Status:
    if all(outcomes):
        return "HELD"
    return "NOT_DETERMINED" if any(outcomes) else "FAILED"


def judge(study: Study, decisions: Mapping[str, Decision]) -> tuple[PredictionStatus, ...]:
    """The status of every registered prediction, in file order; `decisions` by configuration id."""
    return tuple(
        PredictionStatus(id=p.id, status=status_of(p.claim, decisions)) for p in study.predictions.predictions
    )
