"""Records and registered mechanisms that could show nothing, told before they are sealed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prereg.draft.findings import Finding
from prereg.model.study import Study
from prereg.stats.beside import MechanismRow, RecordsRow


def beside_findings(
    study: Study, records: Iterable[RecordsRow], mechanisms: Iterable[MechanismRow]
) -> Iterator[Finding]:
    """What could not be seen of records, and mechanisms that leave no trace or too little of one."""
    places = {c.id: f"protocol.json#/configurations/{i}" for i, c in enumerate(study.protocol.configurations)}
    for row in records:
        where = f"{places[row.configuration]}/records"
        if row.events and row.detectable is None:
            what = f"{row.configuration}: not even records that never match would be seen to fail"
            yield Finding(severity="error", what=what, where=where, next_step="more draws, or fewer events")
        if not row.events:
            what = f"{row.configuration}: its records have no reference: channel R can only be INCOMPLETE"
            yield Finding(severity="warning", what=what, where=where)
    for i, mechanism in enumerate(mechanisms):
        where = f"hypotheses.json#/configurations/{i}"
        name = f"{mechanism.configuration}, {mechanism.hypothesis}"
        if mechanism.distance <= 0:
            what = f"{name}: its law is P, crashes apart: compatible would say nothing"
            yield Finding(severity="warning", what=what, where=where)
        elif mechanism.power is not None and mechanism.power < mechanism.target:
            what = (
                f"{name}: it moves {mechanism.distance:.3g} of the law, which the bound on A_H would show "
                f"with probability {mechanism.power:.2f}, below the {mechanism.target} aimed at"
            )
            yield Finding(severity="warning", what=what, where=where, next_step="more draws")
