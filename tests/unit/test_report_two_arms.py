"""The tables and the page of a study of any two commands: its arms are called as the study calls them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_analyse_decide import HALF, SEAL, A, B, plan, tallies
from test_report_page import Reader

from bench.page import example
from prereg.analyse.decide import decide
from prereg.cli.decisions import OFF_ON, arms_of, show_decisions
from prereg.model.beside import Exposure
from prereg.model.verdict import Decisions
from prereg.report import beside_rows
from prereg.report.page import render


def two_arms() -> Decisions:
    """What two commands came to in edition 2, where every configuration tells of exposure."""
    found = decide(plan(rule="event-gap"), SEAL, tallies(HALF, [(A, 900), (B, 100)], 0), set())
    exposed = tuple(replace(d, exposed=Exposure(draws=0)) for d in found.configurations)
    return replace(found, configurations=exposed)


def test_the_tables_call_the_arms_as_the_study_does(capsys: pytest.CaptureFixture[str]) -> None:
    protocol = plan(rule="event-gap").protocol
    named = tuple(replace(a, id={"off": "fixed", "on": "peeking"}[a.id]) for a in protocol.arms)
    arms = arms_of(replace(protocol, arms=named))
    assert arms == ("fixed", "peeking")
    assert arms_of(plan().protocol) == OFF_ON
    show_decisions(two_arms(), arms)
    told = " ".join(capsys.readouterr().err.split())
    assert "fixed / peeking" in told and "off" not in told and "exposed" not in told
    assert "gap D: how much likelier its event is in peeking than in fixed, at the least" in told


def test_exposure_is_told_only_where_there_is_a_drafter() -> None:
    decisions = two_arms()
    assert beside_rows.rows(plan(rule="event-gap"), decisions) == []
    (one,) = decisions.configurations
    assert beside_rows.has_beside(replace(one, rule="channel-S"))


def test_the_page_heads_the_events_by_the_arms_ids() -> None:
    given = example()
    protocol = given.study.protocol
    named = tuple(replace(a, id={"off": "fixed", "on": "peeking"}[a.id]) for a in protocol.arms)
    study = replace(given.study, protocol=replace(protocol, arms=named))
    page = Reader(render(replace(given, study=study))).text
    for text in ("count fixed", "bounds fixed", "count peeking", "bounds peeking"):
        assert text in page
    assert "bounds off" not in page and "count on" not in page
