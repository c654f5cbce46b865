"""The decision of channel R on one configuration (docs/formats.md section 16; paper §4.2).

It moves no verdict of channel S: a departure of records alone is no departure of outcomes.
"""

from __future__ import annotations

from prereg.analyse.gap import Candidate, largest
from prereg.analyse.tally import Tally
from prereg.model.beside import RecordBounds, RecordsDecision, RecordsReason, RecordsVerdict
from prereg.model.study import Configuration, Study
from prereg.model.verdict import Verdict
from prereg.stats.exact import lowers, uppers
from prereg.stats.records import Replay, record_events


def decide_records(
    study: Study,
    configuration: Configuration,
    off: Tally | None,
    on: Tally | None,
    level: float,
    verdict: Verdict,
) -> RecordsDecision | None:
    """What records say; None for a configuration without any.

    `off` and `on` are None for a lost unit, `level` is that of the configuration's bounds and `verdict` what
    channel S says of it.
    """
    if configuration.records is None:
        return None
    if configuration.records.reference == "none":
        return _undecided("INCOMPLETE", "no-reference")
    if off is None or on is None:
        return _undecided("INVALID", "unit-lost")
    events = record_events(configuration)
    k_off, k_on = (mismatch_counts(study, configuration, tally) for tally in (off, on))
    columns = zip(
        events,
        k_off,
        k_on,
        lowers(k_off, off.draws, level).tolist(),
        uppers(k_off, off.draws, level).tolist(),
        lowers(k_on, on.draws, level).tolist(),
        uppers(k_on, on.draws, level).tolist(),
        strict=True,
    )
    bounds = tuple(
        RecordBounds(event=e, k_off=i, k_on=j, L_off=a, U_off=b, L_on=c, U_on=d)
        for e, i, j, a, b, c, d in columns
    )
    gap = largest(Candidate(value=row.L_on - row.U_off, event=row.event) for row in bounds)
    said, reason = _verdict(verdict, on.proposals, gap.value)
    return RecordsDecision(verdict=said, reasons=(reason,), D=gap.value, D_event=gap.event, bounds=bounds)


def mismatch_counts(study: Study, configuration: Configuration, tally: Tally) -> list[int]:
    """For each record event of a configuration, how many of an arm's draws are in it."""
    reference = study.events.configurations[configuration.id].records
    assert configuration.records is not None and reference is not None and tally.told is not None
    replay = Replay(reference, configuration.records)
    counts = [0] * len(record_events(configuration))
    for outcome, entries, n in tally.told:
        wrong = replay.mismatches(outcome, entries)
        counts[0] += n * bool(wrong)
        for position in wrong:
            # What is past the horizon has no event of its own.
            if position < len(counts):
                counts[position] += n
    return counts


def _verdict(verdict: Verdict, proposals: int, gap: float) -> tuple[RecordsVerdict, RecordsReason]:
    if verdict == "VOID":
        return "VOID", "calibration"
    if proposals == 0:
        return "INCONCLUSIVE", "nothing-proposed"
    return ("FAILS", "mismatch") if gap > 0 else ("NOT_REJECTED", "none")


def _undecided(verdict: RecordsVerdict, reason: RecordsReason) -> RecordsDecision:
    return RecordsDecision(verdict=verdict, reasons=(reason,), D=None, D_event=None, bounds=())
