"""Whether the registered predictions held (docs/formats.md section 11).

A lost unit is bounded, not ignored: an INVALID configuration could have had any other verdict of its rule,
and a prediction is settled only if every completion settles it alike. A claim that names INVALID speaks of
the loss itself, so there INVALID stands for itself. What a ceiling leaves open (section 21) is judged as the
INVALID configuration that it would be otherwise, before it is called INCONCLUSIVE.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from prereg.codec.study_files import VERDICTS
from prereg.model.exact import ExactDecision
from prereg.model.predictions import Claim, ClaimChannel, CountClaim, VerdictClaim
from prereg.model.study import Study
from prereg.model.verdict import Decision, PredictionStatus, Status


def completions(verdict: str, rule: str) -> frozenset[str]:
    """The verdicts that a configuration has, or could have had under its rule if it is INVALID."""
    if verdict != "INVALID":
        return frozenset((verdict,))
    return frozenset(VERDICTS[rule]) - {"INVALID"}


def status_of(claim: Claim, verdicts: Mapping[str, str], rule: str) -> Status:
    """Judge one claim by the verdicts of its channel, which `rule` decided.

    Raises KeyError for a configuration without a verdict.
    """
    if isinstance(claim, VerdictClaim):
        verdict = verdicts[claim.configuration]
        if verdict in claim.in_:
            return "HELD"
        return _settle([option in claim.in_ for option in completions(verdict, rule)])
    if isinstance(claim, CountClaim):
        sure = possible = 0
        for name in claim.configurations:
            verdict = verdicts[name]
            options = frozenset((verdict,)) if claim.verdict == "INVALID" else completions(verdict, rule)
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


def judge(
    study: Study, drawn: Mapping[str, Decision], walked: Mapping[str, ExactDecision]
) -> tuple[PredictionStatus, ...]:
    """The status of every registered prediction, in file order; the decisions of each channel are by id."""
    said: dict[ClaimChannel, Mapping[str, str]] = {
        "draws": {name: d.verdict for name, d in drawn.items()},
        "exact": {name: d.verdict for name, d in walked.items()},
        "records": {name: d.records.verdict for name, d in drawn.items() if d.records is not None},
        "hypothesis": {name: d.hypothesis.status for name, d in drawn.items() if d.hypothesis is not None},
    }
    rule = study.protocol.decision.rule
    return tuple(
        PredictionStatus(
            id=p.id,
            status=status_of(
                p.claim, said[p.claim.channel], rule if p.claim.channel == "draws" else p.claim.channel
            ),
        )
        for p in study.predictions.predictions
    )
