"""The page and the tables of a study of edition 2: records, mechanisms and exposure beside the verdicts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from exact_fixture import exact_files, exact_protocol
from second_fixture import encoded, second_study
from test_analyse_second_edition import CYCLE, decided
from test_report_page import HOSTILE, Reader

from prereg.cli.decisions import show_decisions, verdicts
from prereg.codec.study_files import parse_study
from prereg.model.predictions import VerdictClaim
from prereg.model.study import Study
from prereg.report import words
from prereg.report.beside_rows import alone
from prereg.report.page import ReportInput, render


def given(study: Study | None = None, **changes: Any) -> ReportInput:
    known = second_study() if study is None else study
    return ReportInput(
        study=known,
        seal=None,
        manifest=None,
        entries=(),
        state="analysed",
        head=None,
        decisions=decided(known, **changes),
        audit=None,
    )


def text(value: ReportInput) -> str:
    return " ".join(Reader(render(value)).text.split())


def test_a_failure_of_records_is_said_to_be_one_of_records_alone() -> None:
    page = text(given(on={"shift": 0.1, "proposals": 37}))
    assert "same 37 of 400 ✕ FAILS" in page
    assert "A failure of records alone. It is no failure by outcomes" in page
    assert words.RECORDS["FAILS"].meaning in page
    assert "scores, by the documentation of scores; rests on: the on arm's records miss" in page
    assert "position-200.00000" in page and "None of this moves a verdict above." in page
    assert "same: 7 events and their complements, 3 record events" in page
    assert "A failure of records alone." not in text(given())


def test_compatible_is_never_said_without_its_scope(capsys: pytest.CaptureFixture[str]) -> None:
    skewed = tuple(replace(o, tokens=(1 - o.tokens[0], 1 - o.tokens[1])) for o in CYCLE)
    shown = given(on={"cycle": skewed})
    page = text(shown)
    assert f"The on arm's draws are {words.COMPATIBLE}." in page
    assert "≈ COMPATIBLE" in page and "The null law P is rejected." in page
    assert shown.decisions is not None
    show_decisions(shown.decisions)
    said = " ".join(capsys.readouterr().err.split())
    assert f"COMPATIBLE: {words.COMPATIBLE}." in said


def test_the_distance_to_the_mechanism_stands_beside_that_to_p() -> None:
    page = text(given())
    assert "Mechanism H-D1-phys≈ MATCHES total variation of the on arm to its law 0, to P 0.500000." in page
    assert "✕ DEPARTS total variation of the on arm to its law 0.500000, to P 0." in page
    assert "The second token is drawn from the wrong prefix. (the loop)" in page


def test_the_tables_say_it_too(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    decisions = given(on={"shift": 0.1}).decisions
    assert decisions is not None
    show_decisions(decisions)
    said = capsys.readouterr().err
    assert "same: its records FAIL, its outcomes do not: this is a departure of records alone." in said
    for title in ("Records, beside the verdicts", "by draws", "exactly: total variation of the on arm's law"):
        assert title in said
    assert verdicts(decisions) == {
        "same": {
            "draws": "NOT_REJECTED", "records": "FAILS", "hypothesis": "NOT_COMPATIBLE",
            "exact": "EQUAL_WITHIN_TOLERANCE", "exact-hypothesis": "DEPARTS", "premise": "NOT_REJECTED",
        },
        "other": {"exact": "DEPARTS", "exact-hypothesis": "MATCHES"},
    }  # fmt: skip


def test_lost_units_are_shown_as_lost(capsys: pytest.CaptureFixture[str]) -> None:
    shown = given(lost=["drawn.same.on", "walked.other.on"])
    page = text(shown)
    assert "same – of – – INVALID" in page
    assert "– INVALID total variation of the on arm to its law –, to P –." in page
    assert shown.decisions is not None
    show_decisions(shown.decisions)
    assert "- of -" in capsys.readouterr().err


def test_edition_1_shows_nothing_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    shown = given(parse_study(encoded(exact_files(exact_protocol()))))
    assert "Beside the verdicts" not in text(shown)
    assert shown.decisions is not None
    show_decisions(shown.decisions)
    said = capsys.readouterr().err
    assert "Records, beside" not in said and "Registered mechanisms" not in said


def test_failing_both_ways_is_not_a_failure_of_records_alone() -> None:
    decisions = given(on={"shift": 0.1}).decisions
    assert decisions is not None
    (decision,) = decisions.configurations
    assert alone(decision) and not alone(replace(decision, verdict="FAILS"))
    assert not alone(replace(decision, records=None))


def test_claims_name_their_channel() -> None:
    for channel, begins in (("records", "records, same"), ("hypothesis", "registered mechanism, same")):
        claim = VerdictClaim(configuration="same", in_=("VOID",), channel=channel)  # type: ignore[arg-type]
        assert words.claim(claim).startswith(begins)


def test_a_hostile_study_is_only_text() -> None:
    def change(files: dict[str, Any]) -> None:
        files["hypotheses.json"]["hypotheses"][0] |= {"statement": HOSTILE, "site": HOSTILE}

    def source(p: dict[str, Any]) -> None:
        p["configurations"][0]["records"]["source"] = HOSTILE

    page = render(given(second_study(source, change)))
    assert HOSTILE not in page and "<script" not in page
