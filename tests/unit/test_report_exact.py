"""The page of a study with an exact stage, and the tables of its analysis."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from test_report_page import HOSTILE, Reader

from bench.exact_page import AB, LONG, LONGER, both_channels
from prereg.cli.decisions import show_decisions, verdicts
from prereg.model import law
from prereg.model.exact import EventMasses, ExactDecision, ExactWitness
from prereg.model.predictions import CountClaim
from prereg.model.verdict import BoundRow
from prereg.report import exact_rows, words
from prereg.report.exact_rows import Bar, heaviest, shortest
from prereg.report.page import ReportInput, render
from prereg.report.plots import law_plot
from prereg.stats.channels import contradiction


@pytest.fixture(scope="module")
def given() -> ReportInput:
    return both_channels()


@pytest.fixture(scope="module")
def text(given: ReportInput) -> str:
    return " ".join(Reader(render(given)).text.split())


def decision_of(given: ReportInput, name: str) -> ExactDecision:
    assert given.decisions is not None and given.decisions.exact is not None
    return next(d for d in given.decisions.exact.configurations if d.id == name)


def test_every_exact_verdict_has_word_sign_and_grounds(given: ReportInput, text: str) -> None:
    assert given.decisions is not None and given.decisions.exact is not None
    decided = given.decisions.exact.configurations
    assert {d.verdict for d in decided} == set(words.EXACT)
    for d in decided:
        assert text.count(f"{words.EXACT[d.verdict].sign} {d.verdict}") >= 3
        assert words.EXACT_REASONS[d.reasons[0]] in text
    assert "2 2 2 1 “bbba” (length)at most two tokens (the engine's manual)0.125000" in text
    assert "Engine runs off / on3 / 6 for 3 / 6 leaves" in text
    assert "12 tokens proposed, 0 accepted" in text
    assert "Crash mass off / on0 / 0.062500" in text
    assert "0 to 0.250000" in text
    assert "tolerance 1e-05; every path is walked; premise tested at α = 0.05" in text
    assert "α = 0.05 over m = 2 configurations; same: 8 events and their complements; stale: 8" in text


def test_equality_is_never_said_without_its_scope(given: ReportInput, text: str) -> None:
    assert text.count(words.SCOPE) >= 4
    for section in re.findall(r"Rests on: ([^.]*)\.", text):
        if words.EXACT_REASONS["within-tolerance"] in section:
            assert words.SCOPE in section
    assert not re.search(r"\bconform(s|ed|ing|ant)?\b", text, re.IGNORECASE)
    alone = replace(given, audit=None, state="analysed")
    assert words.SCOPE in " ".join(Reader(render(alone)).text.split())


def test_a_contradiction_stands_first(given: ReportInput, text: str) -> None:
    at = text.index("The two channels contradict each other on stale (draws: FAILS, exact: EQUAL_WITHIN")
    assert at < text.index("By draws.")
    assert "contradict each other on same" not in text
    assert "a bound excludes what the tree says" in text


def test_both_channels_stand_beside_each_other(given: ReportInput) -> None:
    page = render(given)
    table = page[page.index('id="exact"') : page.index('id="x-same"')]
    row = next(r for r in table.split("<tr>") if "#x-stale" in r)
    assert "EQUAL_WITHIN_TOLERANCE" in row and row.count("FAILS") == 2
    drawn = page[page.index('id="configurations"') :]
    row = next(r for r in drawn.split("<tr>") if "#c-stale" in r)
    assert "✕" in row and "EQUAL_WITHIN_TOLERANCE" in row


def test_a_study_without_draws_has_no_empty_tables(given: ReportInput) -> None:
    assert given.decisions is not None
    stages = tuple(s for s in given.study.protocol.stages if s.channel == "exact")
    protocol = replace(given.study.protocol, stages=stages, sampling={})
    study = replace(given.study, protocol=protocol)
    decisions = replace(given.decisions, m=0, configurations=())
    page = render(replace(given, study=study, decisions=decisions))
    text = Reader(page).text
    assert 'id="configurations"' not in page and "Sampling" not in text and "Error budget" not in text
    assert "The exact channel" in text and "By draws" not in text
    page = render(replace(given, study=study, decisions=None, audit=None))
    assert "The sealed plan compares 7 configurations" in Reader(page).text


def test_a_hostile_study_is_only_text(given: ReportInput) -> None:
    protocol = replace(
        given.study.protocol,
        configurations=tuple(replace(c, about=HOSTILE) for c in given.study.protocol.configurations),
    )
    predicates = replace(
        given.study.predicates,
        predicates=tuple(
            replace(p, statement=HOSTILE, source=HOSTILE) for p in given.study.predicates.predicates
        ),
    )
    reader = Reader(
        render(replace(given, study=replace(given.study, protocol=protocol, predicates=predicates)))
    )
    assert not [t for t, _ in reader.tags if t in ("script", "img")]
    assert reader.text.count(HOSTILE) >= 7 + 2
    ids = [i for _, a in reader.tags if (i := a.get("id"))]
    assert len(ids) == len(set(ids))


def test_what_the_auditor_derives_otherwise_is_said(given: ReportInput) -> None:
    row = {"id": "same", "claimed": "NOT_REJECTED", "agrees": False, "differences": ["D"]}
    audit = dict(given.audit or {})
    audit["exact"] = [{**row, "verdict": "DEPARTS", "claimed": "EQUAL_WITHIN_TOLERANCE"}]
    audit["premise"] = [{**row, "status": "FAILS"}]
    text = Reader(render(replace(given, audit=audit))).text
    assert (
        "exact channel: the auditor derives DEPARTS, the analysis claims EQUAL_WITHIN_TOLERANCE. D." in text
    )
    assert "premise: the auditor derives FAILS, the analysis claims NOT_REJECTED. D." in text


def test_the_tables_say_it_too(given: ReportInput, capsys: pytest.CaptureFixture[str]) -> None:
    assert given.decisions is not None
    show_decisions(given.decisions)
    said = " ".join(capsys.readouterr().err.split())
    assert "EQUAL_WITHIN_TOLERANCE: total variation at most 1e-05, " + words.SCOPE in said
    assert "CONTRADICTION on stale: on event o2" in said and "CONTRADICTION on same" not in said
    assert "witness: a witness of mass 0.0625 breaks length: 1 2 2 (length)" in said
    assert "The premise of stale FAILS (bound)" in said
    assert "│ 0.0000 to 0.2500 │" in said
    assert "│ stale │ EQUAL_WITHIN_TOLERANCE │ 0.0000 │ FAILS │ FAILS │" in said
    assert "│ witness │ total-variation, witness │ 0.1875 │ other │ 0.1875 │ 0.0000 / 0.0625 │" in said
    assert "│ bounded │ 3 / 2 │ 3 / 2 │ 0.0000 / 0.2500 │ 4 │ 0 │ 0.0000 │" in said
    assert verdicts(given.decisions)["stale"] == {
        "draws": "FAILS", "exact": "EQUAL_WITHIN_TOLERANCE", "premise": "FAILS",
    }  # fmt: skip
    assert verdicts(given.decisions)["lost"] == {"exact": "INVALID"}


def test_the_shortest_witness_comes_first_and_of_equals_the_heaviest() -> None:
    found = [
        ExactWitness(outcome=outcome, predicate="p", p=p)
        for outcome, p in ((LONGER, 0.5), (LONG, 0.1), (law.Decoded(tokens=(2, 2, 2), finish=None), 0.2))
    ]
    assert [w.p for w in shortest(found)] == [0.2, 0.1, 0.5]


def test_the_heaviest_outcomes_of_either_arm_are_shown(given: ReportInput) -> None:
    events = given.study.events.configurations["witness"].events
    decision = decision_of(given, "witness")
    bars = heaviest(decision, events, ("<end>", "a", "b"))
    assert [(b.label, b.off, b.on) for b in bars] == [
        ("1 “a” (length)", 0.5, 0.5), ("2 “b” (length)", 0.25, 0.125), ("1 2 “ab” (length)", 0.25, 0.125),
        ("any other outcome", 0.0, 0.1875), ("crash", 0.0, 0.0625),
    ]  # fmt: skip
    many = [law.OutcomeEvent(id=f"o{i}", outcome=AB) for i in range(30)]
    masses = tuple(EventMasses(event=e.id, p=None, off=0.0, on=i / 30) for i, e in enumerate(many))
    bars = heaviest(replace(decision, masses=masses), many, ())
    assert [round(30 * b.on) for b in bars] == list(range(29, 29 - exact_rows.HEAVIEST, -1))
    lengths = [law.LengthEvent(id="one", equals=1), law.LengthEvent(id="two", equals=2)]
    masses = tuple(EventMasses(event=e.id, p=None, off=0.1, on=0.2) for e in lengths)
    assert [b.label for b in heaviest(replace(decision, masses=masses), lengths, ())] == [
        "1 tokens", "2 tokens",
    ]  # fmt: skip


@pytest.mark.parametrize("label", ["<script>x</script>", "\x00", "$\\frac{1}$", "x" * 200])
def test_a_plot_of_laws_is_text_and_follows_the_page(label: str) -> None:
    svg = law_plot("c", [Bar(label=label, p=0.1, off=0.2, on=0.3)], (0.0, 0.5))
    root = ElementTree.fromstring(svg)
    assert not [e for e in root.iter() if e.tag.endswith("script")]
    assert "#0102" not in svg and "var(--on)" in svg and "var(--off)" in svg and "var(--law)" in svg


def test_a_claim_names_the_exact_channel() -> None:
    claim = CountClaim(configurations=("a", "b"), verdict="DEPARTS", at_least=1, channel="exact")
    assert words.claim(claim) == "exact channel, at least 1 of a, b: DEPARTS"


def bound(low_off: float, high_off: float, low_on: float, high_on: float) -> BoundRow:
    return BoundRow(
        event="o0", p=None, k_off=1, k_on=1, L_off=low_off, U_off=high_off, L_on=low_on, U_on=high_on
    )


@pytest.mark.parametrize(
    ("row", "off", "on", "slack", "found"),
    [
        (bound(0.4, 0.6, 0.4, 0.6), 0.5, 0.5, 0.0, False),
        (bound(0.1, 0.2, 0.5, 0.6), 0.5, 0.5, 0.0, True),
        (bound(0.5, 0.6, 0.1, 0.2), 0.5, 0.5, 0.0, True),
        (bound(0.1, 0.2, 0.5, 0.6), 0.15, 0.55, 0.0, False),
        (bound(0.4, 0.5, 0.4, 0.5), 0.3, 0.6, 0.0, True),
        (bound(0.1, 0.2, 0.5, 0.6), 0.5, 0.5, 0.2, True),
        (bound(0.1, 0.2, 0.5, 0.6), 0.5, 0.5, 0.3, False),
        (bound(0.4, 0.5, 0.4, 0.5), 0.4, 0.5, 0.0, False),
        (bound(0.5, 0.6, 0.1, 0.2), 0.5, 0.5, 0.2, True),
        (bound(0.5, 0.6, 0.1, 0.2), 0.5, 0.5, 0.31, False),
    ],
)
def test_channels_contradict_each_other_where_no_law_suits_both(
    given: ReportInput, row: BoundRow, off: float, on: float, slack: float, found: bool
) -> None:
    """Gap of the draws: from L_on - U_off to U_on - L_off; of the trees: on - off, widened by the slacks."""
    assert given.decisions is not None
    drawn = replace(given.decisions.configurations[0], bounds=(row,))
    masses = (EventMasses(event="o0", p=None, off=off, on=on),)
    base = decision_of(given, "same")
    walked = replace(base, masses=masses, unexplored=replace(base.unexplored, off=slack, on=slack))
    against = contradiction(drawn, walked)
    assert (against is not None) == found
    assert contradiction(replace(drawn, verdict="INVALID"), walked) is None
    assert contradiction(drawn, replace(walked, verdict="VOID")) is None
