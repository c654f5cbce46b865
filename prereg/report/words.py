"""What the page says: verdicts, statuses, claims, events and outcomes in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from prereg.model import law
from prereg.model.law import Crashed, Decoded, Event, Outcome
from prereg.model.study import Claim, VerdictClaim


@dataclass(frozen=True, slots=True)
class Word:
    """How a verdict, status or result is shown: never by colour alone."""

    tone: str
    """Class in the style sheet: alarm, calm, open, good."""
    sign: str
    meaning: str


VERDICTS = {
    "FAILS": Word(
        "alarm",
        "✕",
        "The arms differ by more than the sealed threshold, or an outcome broke a documented rule that the "
        "reference arm keeps.",
    ),
    "DIFFERS": Word("alarm", "✕", "The arms differ by more than the sealed threshold."),
    "NOT_REJECTED": Word(
        "calm",
        "○",
        "The sealed test did not reject. Failing to reject is not conformance: a difference below the "
        "threshold, or one that this many draws cannot see, may remain.",
    ),
    "INCONCLUSIVE": Word(
        "open", "?", "Nothing was proposed in the test arm, so speculation was never exercised."
    ),
    "VOID": Word(
        "open", "!", "Calibration failed: the reference arm itself departs from its law or breaks a rule."
    ),
    "INVALID": Word("open", "–", "A unit was lost. It counts as a missing outcome, bounded both ways."),
}
STATUSES = {
    "HELD": Word("calm", "●", "True, however the lost units would have turned out."),
    "FAILED": Word("alarm", "✕", "False, however the lost units would have turned out."),
    "NOT_DETERMINED": Word("open", "?", "Lost units could turn it either way."),
}
RESULTS = {
    "AGREES": Word(
        "good", "✓", "The independent auditor re-derived the same decisions from the raw records."
    ),
    "DISAGREES": Word("alarm", "✕", "The independent auditor derived other decisions."),
    "FAILED": Word("alarm", "✕", "A check of the evidence failed."),
    "INCOMPLETE": Word("open", "?", "Evidence that the audit needs is missing."),
}
STEPS = {
    "ok": Word("good", "✓", "checked"),
    "failed": Word("alarm", "✕", "failed"),
    "not-checked": Word("open", "–", "not checked"),
}
REASONS = {
    "unit-lost": "a unit was lost",
    "off-arm-violation": "the reference arm broke a rule",
    "calibration-excess": "the reference arm exceeds its law by more than the allowance",
    "nothing-proposed": "nothing was proposed",
    "witness": "a structural witness",
    "bound": "a bound above the threshold",
    "none": "neither a witness nor a bound above the threshold",
}


def outcome(value: Outcome, vocabulary: Sequence[str] = ()) -> str:
    """An outcome in words; with a vocabulary, tokens are spelled out too."""
    if isinstance(value, Decoded):
        ids = " ".join(map(str, value.tokens)) or "no token"
        spelled = ""
        if value.tokens and all(t < len(vocabulary) for t in value.tokens):
            spelled = " “" + "".join(vocabulary[t] for t in value.tokens) + "”"
        return ids + spelled + ("" if value.finish is None else f" ({value.finish})")
    if isinstance(value, Crashed):
        return f"crash: {value.crash}"
    return f"value {value.value!r}"


def event(value: Event, complement: bool = False) -> str:
    """An event in words."""
    return f"not: {_event(value)}" if complement else _event(value)


def _event(value: Event) -> str:
    match value:
        case law.OutcomeEvent():
            return outcome(value.outcome)
        case law.OtherEvent():
            return "any other outcome"
        case law.PrefixEvent():
            return f"starts {' '.join(map(str, value.tokens))}"
        case law.LengthEvent():
            return f"{value.equals} tokens"
        case law.LongerEvent():
            return f"more than {value.than} tokens"
        case law.FinishEvent():
            return f"finish {value.equals or 'none'}"
        case law.CrashEvent():
            return "crash"
        case law.ViolationEvent():
            return "breaks a rule"
        case law.SetEvent():
            return value.id if value.hypothesis is None else f"event of {value.hypothesis}"
        case law.ValueEvent():
            return f"value {value.equals!r}"
        case law.AtLeastEvent():
            return f"value ≥ {value.value:g}"
    assert_never(value)


def claim(value: Claim) -> str:
    """A registered claim in words."""
    if isinstance(value, VerdictClaim):
        return f"{value.configuration}: {' or '.join(value.in_)}"
    low, high = value.at_least, value.at_most
    if low is not None and low == high:
        amount = f"exactly {low}"
    elif high is None:
        amount = f"at least {low}"
    elif low is None:
        amount = f"at most {high}"
    else:
        amount = f"{low} to {high}"
    return f"{amount} of {', '.join(value.configurations)}: {value.verdict}"
