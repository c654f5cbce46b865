"""Whether draws follow the laws of the trees: the test of fresh randomness (docs/formats.md section 14).

The exact channel presumes that each request draws afresh (paper §3, premise iii). An engine that reuses its
randomness has the right tree and the wrong draws; only the draws can show it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from prereg.analyse.gap import Candidate, largest
from prereg.analyse.laws import ArmLaw
from prereg.analyse.tally import Tally
from prereg.analyse.units import units_of
from prereg.model.exact import ExactDecision, Premise, PremiseArm, PremiseReason, PremiseStatus, PremiseTest
from prereg.model.study import Channel, Configuration, Study
from prereg.stats.budget import bounds_of, level_of
from prereg.stats.exact import lowers, uppers
from prereg.stats.membership import membership_of

CHANNELS: tuple[Channel, Channel] = ("draws", "exact")
EXCESS = 1e-9
"""A bound may lie this far beyond what the tree allows: both are rounded numbers."""


def try_premise(
    study: Study,
    decisions: Collection[ExactDecision],
    tallies: Mapping[str, Tally],
    laws: Mapping[str, ArmLaw],
    lost: Collection[str],
) -> Premise | None:
    """The test of every configuration that is drawn and walked, in the order of the exact stage.

    `tallies` and `laws` are by unit id; units in `lost` are not used. None where the protocol wants no test.
    """
    protocol = study.protocol
    if protocol.exact is None or protocol.exact.premise_alpha is None:
        return None
    drawn = {c.id for c in protocol.drawn()}
    both = [c for c in protocol.walked() if c.id in drawn]
    verdicts = {d.id: d.verdict for d in decisions}
    tests = []
    for configuration in both:
        family = study.events.configurations[configuration.id]
        level = level_of(protocol.exact.premise_alpha, len(both), bounds_of(family))
        draws, trees = (units_of(protocol, configuration, channel) for channel in CHANNELS)
        if any(unit in lost for unit in (*draws, *trees)):
            tests.append(_untested(configuration.id, "INVALID", "unit-lost", level))
        elif verdicts[configuration.id] == "VOID":
            tests.append(_untested(configuration.id, "NOT_TESTED", "not-admitted", level))
        else:
            off, on = (
                _compare(study, configuration, tallies[drawn_unit], laws[tree_unit], level)
                for drawn_unit, tree_unit in zip(draws, trees, strict=True)
            )
            tests.append(_tested(configuration.id, level, off, on))
    return Premise(alpha=protocol.exact.premise_alpha, m=len(both), configurations=tuple(tests))


def _compare(
    study: Study, configuration: Configuration, tally: Tally, law: ArmLaw, level: float
) -> PremiseArm:
    """One arm's draws beside its law: what lies outside, and the bound that exceeds it by most."""
    member = membership_of(study, configuration)
    masses = member.probabilities(law.masses())
    counts = member.totals(tally.outcomes)
    rows = zip(
        member.events,
        masses,
        lowers(counts, tally.draws, level).tolist(),
        uppers(counts, tally.draws, level).tolist(),
        strict=True,
    )
    worst = largest(
        Candidate(value=max(low - mass - law.slack, mass - high), event=event.id)
        for event, mass, low, high in rows
    )
    # Where the walk left anything, however little, a draw may be of what it left.
    left = law.unexplored > 0
    outside = 0 if left else sum(n for outcome, n in tally.outcomes if outcome not in law.mass)
    return PremiseArm(draws=tally.draws, outside=outside, excess=min(1.0, worst.value), event=worst.event)


def _tested(name: str, level: float, off: PremiseArm, on: PremiseArm) -> PremiseTest:
    reasons: list[PremiseReason] = []
    if off.outside or on.outside:
        reasons.append("outside-law")
    if max(off.excess, on.excess) > EXCESS:
        reasons.append("bound")
    return PremiseTest(
        id=name,
        status="FAILS" if reasons else "NOT_REJECTED",
        reasons=tuple(reasons) or ("none",),
        level=level,
        off=off,
        on=on,
    )


def _untested(name: str, status: PremiseStatus, reason: PremiseReason, level: float) -> PremiseTest:
    return PremiseTest(id=name, status=status, reasons=(reason,), level=level, off=None, on=None)
