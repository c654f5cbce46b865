"""The page and the tables of a study of edition 3: attempts, second results, ceilings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from second_fixture import second_study
from test_analyse_second_edition import decided
from test_analyse_tries import decided_with, entry, failed, lost_to, second_result, third_study
from test_report_page import Reader

from prereg.analyse.tries import NO_TRIES, Tries
from prereg.cli.decisions import show_decisions
from prereg.model.attempts import Copies, Tried
from prereg.model.seal import Entry
from prereg.model.study import Study
from prereg.report import words
from prereg.report.history import timeline
from prereg.report.page import ReportInput, render
from prereg.report.tried import LEFT_OPEN, beside

DRAWN = Tries(
    tried={"drawn.same.on": Tried(attempt=2), "walked.other.off": Tried(attempt=3)},
    copies={
        "drawn.same.on": Copies(copies=2, differing=3),
        "drawn.same.off": Copies(copies=1, differing=0),
        "walked.other.on": Copies(copies=1, differing=1),
    },
)


def given(study: Study, tries: Tries, lost: Sequence[str] = (), entries: Sequence[Entry] = ()) -> ReportInput:
    over = {name: tries.tried[name] for name in lost}
    return ReportInput(
        study=study,
        seal=None,
        manifest=None,
        entries=entries,
        state="analysed",
        head=None,
        decisions=decided_with(study, over, tries=tries),
        audit=None,
    )


def text(value: ReportInput) -> str:
    return " ".join(Reader(render(value)).text.split())


def said(value: ReportInput, capsys: pytest.CaptureFixture[str]) -> str:
    assert value.decisions is not None
    show_decisions(value.decisions)
    return " ".join(capsys.readouterr().err.split())


def test_attempts_and_second_results_stand_beside_their_decision(capsys: pytest.CaptureFixture[str]) -> None:
    shown = given(third_study(attempts=3), DRAWN)
    page = text(shown)
    drawn = (
        "off: 1 shard was drawn again and came out the same; "
        "on: tried twice, 3 draws came out differently when they were drawn again"
    )
    walked = "off: tried 3 times; on: 1 leaf came out differently when it was walked again"
    # Once in the table of verdicts, once with the rest of the configuration.
    assert page.count(drawn) == page.count(walked) == 2
    assert page.count("the engine did not return the same for the same seed") == 2
    assert "3 attempts a unit" in page
    told = said(shown, capsys)
    assert "on: tried twice, 3 draws came out differently when they were drawn again." in told
    assert "other, off: tried 3 times." in told and "Tried again, and drawn again" in told


def test_where_all_went_well_nothing_is_said_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    shown = given(third_study(), NO_TRIES)
    assert "tried" not in text(shown).lower() and "again" not in said(shown, capsys)
    assert shown.decisions is not None
    assert beside(shown.decisions.configurations[0], ("a", "b")) == []
    earlier = second_study()
    old = replace(given(earlier, NO_TRIES), decisions=decided(earlier))
    assert beside(decided(earlier).configurations[0], ("a", "b")) == []
    assert "tried" not in text(old).lower() and "1 attempt" in text(old)


def test_what_a_ceiling_left_open_has_words_and_a_count_of_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    study = third_study()
    tries = Tries(
        tried={name: lost_to("unit-ceiling", 1) for name in ("drawn.same.on", "walked.other.off")}, copies={}
    )
    reason = failed("drawn.same.on", 1, "unit-ceiling")
    shown = given(
        study, tries, lost=list(tries.tried), entries=[entry("collection-started", **STARTED), reason]
    )
    page = text(shown)
    assert page.count(LEFT_OPEN.meaning) == 2  # by draws, and by the exact channel
    assert words.VERDICTS["INCONCLUSIVE"].meaning not in page
    assert "Rests on: a unit was lost to a ceiling." in page
    assert "1 unit was lost and not run again." in page and "or INCONCLUSIVE where only ceilings took" in page
    refuses = (
        "a unit that was lost is bounded both ways; where shards are missing otherwise, analysis refuses"
    )
    bounds = refuses.replace("analysis refuses", "their unit is bounded as INVALID")
    assert (refuses if study.protocol.missing == "refuse" else bounds) in page
    assert "what only a ceiling of time took is left open, as INCONCLUSIVE" in page
    assert "drawn.same.on: it went (unit ceiling, attempt 1)" in page
    told = said(shown, capsys)
    assert "same is left open: A unit was lost" in told and "other is left open" in told


def test_both_ways_to_be_inconclusive_are_counted_apart() -> None:
    shown = given(third_study(), NO_TRIES)
    assert shown.decisions is not None
    (one,) = shown.decisions.configurations
    idle = replace(one, id="same", verdict="INCONCLUSIVE", reasons=("nothing-proposed",))
    taken = replace(one, id="same", verdict="INCONCLUSIVE", reasons=("ceiling",))
    page = text(replace(shown, decisions=replace(shown.decisions, configurations=(idle, taken), exact=None)))
    for word in (words.VERDICTS["INCONCLUSIVE"], LEFT_OPEN):
        assert f"1? INCONCLUSIVE{word.meaning}" in page


STARTED: dict[str, Any] = {"attempt": 1, "workers": 1, "network": "cut", "network_reason": None}


def begun(seq: int, shard: int, attempt: int = 1) -> Entry:
    return entry("attempt", seq, unit="drawn.same.on", shard=shard, attempt=attempt)


def stored(seq: int, shard: int, attempt: int = 1) -> Entry:
    return entry("shard-stored", seq, unit="drawn.same.on", shard=shard, attempt=attempt, draws=20)


def second(seq: int, differing: int) -> Entry:
    one = second_result("drawn.same.on", differing)
    return replace(one, seq=seq, body={**one.body, "lines": 20})


@pytest.mark.parametrize(
    ("entries", "lines"),
    [
        (
            [begun(3, 0), stored(4, 0), begun(5, 1), stored(6, 1)],
            [("shards stored", "3–6", "2 shards, 40 records, until")],
        ),
        (
            [begun(3, 0), stored(4, 0), begun(5, 1)],
            [("shards stored", "3–5", "1 shard, 20 records, 1 begun and not stored, until")],
        ),
        ([begun(3, 0)], [("shards begun", "3", "1 begun and not stored, until")]),
        (
            [begun(3, 0), second(4, 0), second(5, 7), stored(6, 0, 2)],
            [
                ("shards begun", "3", "1 begun"),
                ("duplicate", "4", "drawn.same.on, shard 0: a second result, the same"),
                ("duplicate", "5", "shard 0: a second result, kept: 7 of its 20 lines differ"),
                ("shards stored", "6", "1 shard"),
            ],
        ),
        (
            [
                begun(3, 0),
                replace(failed("drawn.same.on", 1, "engine"), seq=4),
                begun(5, 0, 2),
                stored(6, 0, 2),
            ],
            [
                ("shards begun", "3", "1 begun"),
                ("unit invalid", "4", "drawn.same.on: it went (engine, attempt 1)"),
                ("shards stored", "5–6", "1 shard, 20 records, until"),
            ],
        ),
    ],
)
def test_the_history_is_told_compactly(entries: list[Entry], lines: list[tuple[str, str, str]]) -> None:
    moments = timeline(entries)
    assert [(m.what, m.seq) for m in moments] == [(what, seq) for what, seq, _ in lines]
    for moment, (_, _, detail) in zip(moments, lines, strict=True):
        assert detail in moment.detail


def test_failures_before_the_attempt_that_counts_are_told_apart_from_losses() -> None:
    entries = [
        entry("collection-started", **STARTED),
        failed("drawn.same.on", 1, "engine"),
        failed("drawn.same.off", 1, "engine"),
        failed("drawn.same.off", 2, "request-ceiling"),
    ]
    tries = Tries(tried={"drawn.same.on": Tried(attempt=2)}, copies={})
    page = text(given(third_study(), tries, entries=entries))
    assert "1 unit was lost" in page
    assert "drawn.same.on, attempt 1: it went" in page and "drawn.same.off, attempt 1: it went" in page
    assert "drawn.same.off, attempt 2" not in page.split("The sealed plan")[0]
