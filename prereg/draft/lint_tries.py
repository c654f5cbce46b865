"""What attempts and ceilings of edition 3 mean for a study, told before it is sealed (section 21)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prereg.draft.findings import Finding
from prereg.model.study import Study

AT = "protocol.json#/ceilings"


def tries_findings(study: Study, seconds: Sequence[tuple[str, str, float | None]]) -> Iterator[Finding]:
    """What the protocol of edition 3 allows, and units that a ceiling would take.

    `seconds` are what each unit of draws takes on one core, by configuration and arm, None if unknown.
    """
    protocol = study.protocol
    if not protocol.since(3):
        return
    if protocol.attempts > 1:
        what = (
            "a unit that fails is tried again, whole and on the same seeds, "
            f"{protocol.attempts} times in all: only its last attempt counts, so that alpha, bounds and "
            "power are those of one; unit_seconds is of all of them together"
        )
        yield Finding(severity="note", what=what, where="protocol.json#/attempts")
    word = protocol.ceilings.on_ceiling
    if word == "INCONCLUSIVE":
        what = (
            "a configuration that lost units to ceilings alone is INCONCLUSIVE and not INVALID; predictions "
            "bound it both ways all the same: one that names INCONCLUSIVE does not count it"
        )
        yield Finding(severity="note", what=what, where=f"{AT}/on_ceiling")
    ceiling = protocol.ceilings.unit_seconds
    for configuration, arm, needed in seconds:
        if needed is not None and needed > ceiling:
            what = (
                f"{configuration}, {arm}: about {needed:,.0f} s of one core, above the ceiling of "
                f"{ceiling:,} s: the configuration would be {word}"
            )
            remedy = "raise unit_seconds, or fewer draws"
            yield Finding(severity="warning", what=what, where=f"{AT}/unit_seconds", next_step=remedy)
