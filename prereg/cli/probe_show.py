"""How a probe's result reads: for programs as one JSON value, for people as tables and the failing path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from prereg.cli.output import number, say, table

if TYPE_CHECKING:
    from prereg.collect.choices import Walk, Walked
    from prereg.model.law import Mass, Outcome
    from prereg.model.tree import ExactResult
    from prereg.model.verdict import Decision

SHOWN = 8
"""Outcomes in a table."""


class Pieces(Sequence[str]):
    """A vocabulary of which only some tokens' texts are known; the others read as their numbers."""

    def __init__(self, texts: Mapping[int, str]) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return max(self._texts, default=-1) + 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        text = self._texts.get(index)
        # Spaces belong to tokens here, so they must be seen, and so must line ends.
        return str(index) if text is None else repr(text)[1:-1].replace(" ", "\u00b7")


def pieces_of(walked: Walked, vocabulary: Sequence[str] | None) -> Sequence[str]:
    """What tokens read as."""
    return vocabulary if vocabulary is not None else Pieces(walked.texts or {})


def law_json(law: Sequence[Mass]) -> list[dict[str, Any]]:
    """A law as JSON."""
    from prereg.codec.convert import to_json

    return [{"outcome": to_json(m.outcome), "p": m.p} for m in law]


def as_value(
    result: ExactResult, walked: Walked, walk: Walk, repeatability: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """The JSON value of an exact probe."""
    off, on = walked.off, walked.on
    # Not by the slack: that of a whole tree may be a rounding away from 0.
    exact = off.unexplored == 0 and on.unexplored == 0
    return {
        "exploratory": True,
        "channel": "exact",
        "configuration": dict(walk.configuration),
        "model": dict(walk.model),
        "prompt": list(walked.prompt),
        "first": walk.first,
        "verdict": result.verdict,
        "reason": result.reason,
        "tolerance": result.tolerance,
        "repeatability": None if repeatability is None else dict(repeatability),
        "tv": result.tv_upper if exact else None,
        "tv_lower": result.tv_lower,
        "tv_upper": result.tv_upper,
        "witness_mass": result.witness_mass,
        "event": result.event,
        "event_gap": result.event_gap,
        "event_gap_lower": result.event_gap_lower,
        "event_gap_upper": result.event_gap_upper,
        "proposals": result.proposals,
        "accepted": result.accepted,
        "runs": {"off": off.runs, "on": on.runs},
        "unexplored": {"off": result.slack_off, "on": result.slack_on},
        "seconds": {"off": round(off.seconds, 3), "on": round(on.seconds, 3)},
        "off": law_json(result.off),
        "on": law_json(result.on),
        "admission": {"off": off.admission, "on": on.admission},
        "failing_path": None if walked.explanation is None else dict(walked.explanation),
    }


def show(result: ExactResult, walked: Walked, walk: Walk, vocabulary: Sequence[str] | None) -> None:
    """An exact probe for people."""
    from prereg.report.words import gap_words

    off, on = walked.off, walked.on
    if walk.first is not None:
        say(f"The law of the first {'token' if walk.first == 1 else f'{walk.first} tokens'}.")
    table(
        "Exact probe (exploratory)",
        ("", "off", "on"),
        [
            ("engine runs", number(off.runs), number(on.runs)),
            ("outcomes", number(len(result.off)), number(len(result.on))),
            ("unexplored mass", number(result.slack_off), number(result.slack_on)),
            ("seconds", f"{off.seconds:.1f}", f"{on.seconds:.1f}"),
        ],
    )
    pieces = pieces_of(walked, vocabulary)
    if result.verdict == "DEPARTS":
        _show_widest(result, pieces)
    if result.slack_off or result.slack_on:
        say("Masses are those of the explored paths; as much as is unexplored may come on top.")
    say(f"{result.verdict}: {result.reason}.")
    if result.tv_upper - result.tv_lower > 1e-9:
        say(f"  total variation   {result.tv_lower:.6g} to {result.tv_upper:.6g}")
    else:
        say(f"  total variation   {result.tv_upper:.6g}")
    if (gap := gap_words(result)) is not None:
        say(f"  largest event     {gap}")
    say(f"  witness mass      {result.witness_mass:.6g}")
    say(f"  drafter           {result.proposals:,} proposed, {result.accepted:,} accepted over all paths")
    if walked.explanation is not None and result.verdict == "DEPARTS":
        _show_path(walked.explanation, pieces)


def _show_widest(result: ExactResult, pieces: Sequence[str]) -> None:
    a = {m.outcome: m.p for m in result.off}
    b = {m.outcome: m.p for m in result.on}
    widest = sorted({**a, **b}, key=lambda o: -abs(a.get(o, 0.0) - b.get(o, 0.0)))[:SHOWN]
    table(
        "Outcomes that differ most",
        ("outcome", "off", "on", "on - off"),
        [
            (
                _text(o, pieces),
                number(a.get(o, 0.0)),
                number(b.get(o, 0.0)),
                f"{b.get(o, 0.0) - a.get(o, 0.0):+.4f}",
            )
            for o in widest
        ],
    )


def _text(outcome: Outcome, pieces: Sequence[str]) -> str:
    from prereg.model.law import Crashed, Decoded

    if isinstance(outcome, Decoded):
        return " ".join(pieces[t] if t < len(pieces) else str(t) for t in outcome.tokens) or "(nothing)"
    return f"raised {outcome.crash}" if isinstance(outcome, Crashed) else str(outcome.value)


def _show_path(path: Mapping[str, Any], pieces: Sequence[str]) -> None:
    from prereg.report.failing_path import lines

    say("The shortest failing path:")
    tokens = path.get("tokens")
    shown = dict(path)
    if tokens is not None and len(tokens) < (max(tokens, default=-1) + 1):
        # A long row was cut to the tokens that matter: the likeliest of those first.
        shown["used"], shown["expected"] = path["used"][:SHOWN], path["expected"][:SHOWN]
        names = " ".join(pieces[t] if t < len(pieces) else str(t) for t in tokens[:SHOWN])
        say(f"  of the tokens          {names}")
    for line in lines(shown, pieces):
        say(f"  {line}")


def show_draws(decision: Decision, seeds: str, has_reference: bool) -> None:
    """A probe by draws for people."""
    table(
        "Draws (exploratory)",
        ("", "off", "on"),
        [
            ("draws", number(decision.draws.off), number(decision.draws.on)),
            ("crashes", number(decision.crashes.off), number(decision.crashes.on)),
        ],
    )
    words = {
        "FAILS": "the two arms differ, or a documented rule was broken",
        "NOT_REJECTED": "these draws show no difference; that is not evidence of conformance",
        "INCONCLUSIVE": "the drafter proposed nothing: speculation was not exercised",
        "VOID": "the off arm broke a rule or missed its enumerated law",
    }
    say(f"{decision.verdict}: {words.get(decision.verdict, '')}.")
    if decision.D is not None:
        side = "not " if decision.D_complement else ""
        say(f"  largest gap       {decision.D:+.6g} on {side}{decision.D_event} (threshold 0.01, alpha 0.05)")
    say(f"  witnesses         {sum(w.count for w in decision.witnesses):,} draws")
    say(f"  bounds            {decision.B:,}, each at level {decision.level:.3g}")
    say(f"  drafter           {decision.proposals or 0:,} proposed, {decision.accepted or 0:,} accepted")
    say(f"  seeds             {seeds}")
    if not has_reference:
        say("  no reference law  events over the first token; the off arm is not calibrated")
