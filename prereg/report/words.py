"""What the page says: verdicts, statuses, claims, events and outcomes in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from prereg.model import law
from prereg.model.law import Crashed, Decoded, Event, Outcome
from prereg.model.predictions import Claim, VerdictClaim
from prereg.model.tree import ExactResult
from prereg.stats.channels import Contradiction


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
SCOPE = "for this model, prompt and horizon, presuming fresh randomness"
"""What EQUAL_WITHIN_TOLERANCE is never said without."""

EXACT = {
    "DEPARTS": Word(
        "alarm",
        "✕",
        "The two output laws of the engine differ by more than the sealed tolerance, or the on arm returns "
        "an outcome that the off arm cannot return and that breaks a documented rule.",
    ),
    "EQUAL_WITHIN_TOLERANCE": Word(
        "calm",
        "=",
        f"The total variation of the two output laws is at most the sealed tolerance, {SCOPE}. It is no "
        "word on any other.",
    ),
    "INCONCLUSIVE": Word(
        "open", "?", "Nothing was proposed in the on arm, or too much is unexplored to tell."
    ),
    "VOID": Word(
        "open",
        "!",
        "The enumeration is not to be believed: the leaves are no tree, a check of it failed, or the off arm "
        "misses its reference law.",
    ),
    "INVALID": Word("open", "–", "A unit was lost. Nothing is known of its law."),
}
PREMISE = {
    "FAILS": Word(
        "alarm",
        "✕",
        "The draws do not follow the law of their own arm's tree: requests do not draw afresh, or the tree "
        "is not the engine's.",
    ),
    "NOT_REJECTED": Word("calm", "○", "The draws do not contradict the law of their own arm's tree."),
    "NOT_TESTED": Word("open", "–", "The exact verdict is VOID: there is no law to hold the draws to."),
    "INVALID": Word("open", "–", "A unit of either channel was lost."),
}
RECORDS = {
    "FAILS": Word(
        "alarm",
        "✕",
        "What the engine returned beside the tokens departs from its documentation more often with "
        "speculation on. That is a matter of records alone, and says nothing of the outcomes.",
    ),
    "NOT_REJECTED": Word("calm", "○", "The sealed test did not reject the records."),
    "INCONCLUSIVE": Word("open", "?", "Nothing was proposed in the test arm."),
    "VOID": Word("open", "!", "Calibration failed, so that nothing is said of the records."),
    "INVALID": Word("open", "–", "A unit was lost."),
    "INCOMPLETE": Word("open", "…", "No reference can be named that the records could be held to."),
}
RECORDS_REASONS = {
    "no-reference": "no reference is documented",
    "unit-lost": "a unit was lost",
    "calibration": "the configuration is VOID",
    "nothing-proposed": "nothing was proposed",
    "mismatch": "the on arm's records miss the reference more often",
    "none": "no bound above 0",
}
COMPATIBLE = "consistent with this mechanism; others are not excluded"
"""What COMPATIBLE is never said without."""

COMPATIBILITY = {
    "COMPATIBLE": Word("calm", "≈", f"The on arm's draws are {COMPATIBLE}."),
    "NOT_COMPATIBLE": Word("alarm", "✕", "The on arm's draws are not those of the registered mechanism."),
    "VOID": Word("open", "!", "Calibration failed: the numbers stand, the comparison does not."),
    "INVALID": Word("open", "–", "A unit was lost."),
}
DISTANCE = {
    "MATCHES": Word(
        "calm", "≈", "The on arm's law is that of the registered mechanism, within the sealed tolerance."
    ),
    "DEPARTS": Word("alarm", "✕", "The on arm's law is not that of the registered mechanism."),
    "INCONCLUSIVE": Word("open", "?", "Too much is unexplored to tell."),
    "VOID": Word("open", "!", "The enumeration is not to be believed."),
    "INVALID": Word("open", "–", "A unit was lost."),
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
    "ceiling": "a unit was lost to a ceiling",
    "off-arm-violation": "the reference arm broke a rule",
    "calibration-excess": "the reference arm exceeds its law by more than the allowance",
    "nothing-proposed": "nothing was proposed",
    "witness": "a structural witness",
    "bound": "a bound above the threshold",
    "none": "neither a witness nor a bound above the threshold",
}
EXACT_REASONS = {
    "unit-lost": "a unit was lost",
    "ceiling": "a unit was lost to a ceiling",
    "tree": "the leaves of an arm are no tree",
    "admission": "a check of the enumeration failed or looked at nothing",
    "oracle": "the off arm differs from the reference law",
    "nothing-proposed": "nothing was proposed",
    "total-variation": "the total variation exceeds the tolerance",
    "witness": "a structural witness",
    "interval": "the total variation may lie on either side of the tolerance",
    "within-tolerance": "the total variation is at most the tolerance",
}
PREMISE_REASONS = {
    "unit-lost": "a unit was lost",
    "not-admitted": "the exact verdict is VOID",
    "outside-law": "some draws have outcomes that no leaf has",
    "bound": "a bound excludes what the tree says",
    "none": "no draw and no bound contradicts the tree",
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


def contradiction(value: Contradiction) -> str:
    """What two channels say of one event that cannot both be true."""
    drawn, walked = (f"[{low:.4g}, {high:.4g}]" for low, high in (value.drawn, value.walked))
    return (
        f"on event {value.event} the draws put mu_on - mu_off in {drawn}, the trees in {walked}. One of them "
        "is wrong: requests do not draw afresh, or the engine behaves otherwise when its choices are "
        "controlled."
    )


CHANNELS = {
    "draws": "",
    "exact": "exact channel, ",
    "records": "records, ",
    "hypothesis": "registered mechanism, ",
}
"""What a claim begins with."""


def claim(value: Claim) -> str:
    """A registered claim in words."""
    return CHANNELS[value.channel] + _claim(value)


def _claim(value: Claim) -> str:
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


def gap_words(result: ExactResult) -> str | None:
    """The event whose arms differ most and by how much, or None where there are no events."""
    gap, lower, upper = result.event_gap, result.event_gap_lower, result.event_gap_upper
    if gap is None or lower is None or upper is None:
        return None
    if upper - lower <= 1e-9:
        return f"{result.event}, on minus off {gap:+.6g}"
    return f"{result.event}, on minus off {lower:+.6g} to {upper:+.6g} ({gap:+.6g} of what was explored)"
