"""What a failing assertion says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from prereg.report import failing_path
from prereg.report.words import gap_words

if TYPE_CHECKING:
    from prereg.model.tree import ExactResult
    from prereg.testing.assertion import Finding

NOTHING_PROPOSED = """\
Nothing proposed proves nothing. To make the drafter propose:
  - prompt lookup proposes what followed the last tokens when they occurred before: give a prompt that repeats
    itself, as the default one does, and leave some mass on its continuation (no small top_k or top_p);
  - drafter="assistant" proposes at every step, where the engine takes a draft model;
  - allow_inconclusive=True passes the test without an answer."""

UNEXPLORED = """\
The time was not enough. Raise `seconds` (None walks to the end), or lower `horizon`."""

VACUOUS = """\
Equality of what takes no part proves nothing.
  - of a class or feature that changes nothing: give it arguments, or a model and a prompt, on which it acts;
  - of proposals that are never accepted: a flatter `model` (a smaller initializer_range), a longer `horizon`;
  - allow_inconclusive=True passes the test without an answer."""

REMEMBERS = """\
The same choices, made again, came out otherwise: something outlives a request.
Look for data kept on the class, in a mutable default argument, in a module or a file, and for random numbers
of the processor's own."""


def message(finding: Finding) -> str:
    """The verdict, how large the difference is, and the shortest failing path."""
    exact = finding.exact
    lines = [f"{exact.verdict}: {exact.reason}.", *_about(finding)]
    if exact.tv_upper - exact.tv_lower > 1e-9:
        lines.append(f"  total variation        {exact.tv_lower:.6g} to {exact.tv_upper:.6g}")
    else:
        lines.append(f"  total variation        {exact.tv_upper:.6g}")
    if (gap := gap_words(exact)) is not None:
        lines.append(f"  largest event          {gap}")
    lines.append(f"  drafter                {exact.proposals:,} proposed, {exact.accepted:,} accepted")
    for name, tv in finding.activity.items():
        lines.append(f"  changed by {name:<11} {tv:.6g} of plain sampling")
    if exact.verdict == "DEPARTS" and finding.path is not None:
        shown = failing_path.lines(finding.path, finding.vocabulary)
        lines += ["The shortest failing path:", *(f"  {line}" for line in shown)]
    if exact.verdict == "VOID":
        lines += _void(finding.admission)
    if exact.verdict == "INCONCLUSIVE":
        lines.append(_advice(exact))
    return "\n".join(lines)


def _advice(exact: ExactResult) -> str:
    """What to do about no answer."""
    if exact.proposals == 0:
        return NOTHING_PROPOSED
    return UNEXPLORED if exact.tv_upper > exact.tolerance else VACUOUS


def _about(finding: Finding) -> list[str]:
    configuration = finding.configuration
    parts = [f"{configuration['adapter']} ({configuration['build']})", configuration["drafter"]["kind"]]
    for name, value in configuration["features"].items():
        for own in value if isinstance(value, list) else []:
            if isinstance(own, dict) and "class" in own:
                arguments = ", ".join(f"{key}={given!r}" for key, given in own["arguments"].items())
                parts.append(f"{own['class']}({arguments})")
        if not any(isinstance(own, dict) for own in (value if isinstance(value, list) else [])):
            parts.append(f"{name}={value!r}")
    return [f"  configuration          {', '.join(parts)}"]


def _void(admission: Mapping[str, Mapping[str, Any]]) -> list[str]:
    lines = []
    for arm, checks in admission.items():
        for name, check in checks.items():
            if isinstance(check, dict) and not check.get("ok", False):
                found = [str(item.get("what", item)) for item in check.get("differences", [])[:1]]
                lines.append(f"  {arm} arm, {name}: {'; '.join(found) or check}")
    replayed = any(
        not checks.get(name, {}).get("ok", True)
        for checks in admission.values()
        for name in ("walk", "replay")
    )
    return [*lines, REMEMBERS] if replayed else lines
