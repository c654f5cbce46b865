"""What can be known about an exact stage before it is walked: whether its verdicts can go both ways."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prereg.draft.findings import Finding
from prereg.model.study import ExactPlan, Study
from prereg.stats.premise import PremiseRow
from prereg.stats.trees import hidden_mass, needed_runs


def exact_findings(study: Study, premise: Iterable[PremiseRow]) -> Iterator[Finding]:
    """Verdicts of the exact stage, and of the test of its premise, that could not be reached."""
    protocol, plan = study.protocol, study.protocol.exact
    if plan is None:
        return
    if not protocol.test_arm.speculation:
        at = f"protocol.json#/arms/{protocol.arms.index(protocol.test_arm)}/speculation"
        what = "the exact stage could only be INCONCLUSIVE: its test arm proposes nothing"
        yield Finding(severity="error", what=what, where=at)
    if plan.mass > plan.tolerance:
        what = (
            f"a walk may end with {plan.mass:g} unexplored, above the tolerance of {plan.tolerance:g}: "
            "EQUAL_WITHIN_TOLERANCE could not be reached then"
        )
        remedy = "a mass of at most the tolerance"
        yield Finding(severity="warning", what=what, where="protocol.json#/exact/mass", next_step=remedy)
    yield from _tree_findings(study, plan)
    for row in premise:
        at = "protocol.json#/exact/premise_alpha"
        name = f"{row.configuration}, {row.arm}"
        if not row.reachable:
            what = f"{name}: no {row.draws:,} draws could fail the premise by a bound"
            remedy = "more draws, fewer events, or null for no test"
            yield Finding(severity="error", what=what, where=at, next_step=remedy)
        elif row.power_at_planned_gap is not None and row.power_at_planned_gap < row.target:
            what = (
                f"{name}: draws that are off the tree's law by {row.planned_gap} on an event of mass "
                f"{row.base_rate:.3g} would fail the premise with probability "
                f"{row.power_at_planned_gap:.2f}, below the {row.target} aimed at"
            )
            yield Finding(severity="warning", what=what, where=at, next_step="more draws")


def _tree_findings(study: Study, plan: ExactPlan) -> Iterator[Finding]:
    """Trees that would be too small for a verdict, and off arms that nothing is compared with."""
    for configuration in study.protocol.walked():
        name = configuration.id
        reference = study.events.configurations[name].reference
        if reference is None:
            what = (
                f"{name}: it has no reference law, so that its off arm stays uncalibrated: "
                "both arms may be wrong alike"
            )
            alone = study.protocol.decision.rule == "event-gap"
            remedy = "a study with channel-S, or an exact stage alone" if alone else "prereg events DIR"
            at = f"events.json#/configurations/{name}/reference"
            yield Finding(severity="warning", what=what, where=at, next_step=remedy)
            continue
        needed = needed_runs(plan, reference)
        if plan.runs is not None and plan.runs < needed:
            what = (
                f"{name}: {plan.runs:,} runs are too few for a tree of about {needed:,}: "
                "what they leave unexplored can make it INCONCLUSIVE"
            )
            remedy = f"more than {needed:,} runs (a speculating arm has a few more paths), or null"
            yield Finding(severity="warning", what=what, where="protocol.json#/exact/runs", next_step=remedy)
        hidden = hidden_mass(plan, reference)
        if hidden > plan.tolerance:
            what = (
                f"{name}: paths lighter than {plan.close_floor:g} weigh {hidden:.3g} of the reference law, "
                f"above the tolerance of {plan.tolerance:g}: EQUAL_WITHIN_TOLERANCE could not be reached"
            )
            at = "protocol.json#/exact/close_floor"
            yield Finding(severity="warning", what=what, where=at, next_step="a lower floor, or 0")
