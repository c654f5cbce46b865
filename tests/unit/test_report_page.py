"""The page: what it says, what it must never say, and that it needs nothing else."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from study_fixture import fabricate_records, make_study, seal, signing_key

from bench.page import example
from prereg.model import law
from prereg.model.law import Crashed, Decoded, Valued
from prereg.model.predictions import CountClaim, VerdictClaim
from prereg.model.seal import Entry, EntryType
from prereg.model.verdict import BoundRow
from prereg.report import words
from prereg.report.history import timeline
from prereg.report.html import write_report
from prereg.report.page import ReportInput, render
from prereg.report.plots import event_plot, gap_plot, largest, plain
from prereg.store.layout import StudyPaths

HOSTILE = '<script>alert(1)</script><img src=x onerror=alert(2)> & "quotes" \' $x_2$'


class Reader(HTMLParser):
    """Tags with their attributes, and the visible text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._hidden = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._hidden = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self._hidden = False

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.text += data


@pytest.fixture(scope="module")
def given() -> ReportInput:
    return example()


@pytest.fixture(scope="module")
def page(given: ReportInput) -> str:
    return render(given)


def test_a_hostile_study_is_only_text(given: ReportInput) -> None:
    protocol = replace(
        given.study.protocol,
        title=HOSTILE,
        question=HOSTILE,
        exclusions=(HOSTILE,),
        authors=(replace(given.study.protocol.authors[0], name=HOSTILE),),
        configurations=tuple(replace(c, about=HOSTILE) for c in given.study.protocol.configurations),
    )
    predictions = replace(
        given.study.predictions,
        predictions=tuple(replace(p, statement=HOSTILE) for p in given.study.predictions.predictions),
    )
    predicates = replace(
        given.study.predicates,
        predicates=tuple(
            replace(p, statement=HOSTILE, source=HOSTILE) for p in given.study.predicates.predicates
        ),
    )
    study = replace(given.study, protocol=protocol, predictions=predictions, predicates=predicates)
    entries = tuple(
        replace(e, body={**e.body, "reason": HOSTILE}) if e.type == "unit-invalid" else e
        for e in given.entries
    )
    audit = {**given.audit, "steps": [{**s, "detail": HOSTILE} for s in given.audit["steps"]]}  # type: ignore[index, dict-item]
    reader = Reader(render(replace(given, study=study, entries=entries, audit=audit)))
    assert not [t for t, _ in reader.tags if t in ("script", "img")]
    assert not [a for _, attrs in reader.tags for a in attrs if a.startswith("on")]
    assert reader.text.count(HOSTILE) >= 10 + len(given.audit["steps"])  # type: ignore[index]


def test_what_others_wrote_turns_no_direction_and_has_no_codes(given: ReportInput) -> None:
    entries = tuple(
        replace(e, body={**e.body, "reason": "broke\x1b[2K\u202eback"}) if e.type == "unit-invalid" else e
        for e in given.entries
    )
    page = render(replace(given, entries=entries))
    assert "broke\\x1b[2K\\u202eback" in page
    assert not {"\x1b", "\u202e"} & {*page}


@pytest.mark.parametrize(
    "value", ["<script>x</script>", "\x00\x0b", "$\\frac{1}$", "\u202e é", "]]>", "x" * 200]
)
def test_a_hostile_event_is_only_text_in_a_plot(value: str) -> None:
    row = BoundRow(event="e", p=None, k_off=1, k_on=5, L_off=0.1, U_off=0.3, L_on=0.4, U_on=0.6)
    decision = replace(example().decisions.configurations[0], bounds=(row,))  # type: ignore[union-attr]
    svg = event_plot(decision, [law.FinishEvent(id="e", equals=value)], 0.01)
    root = ElementTree.fromstring(svg)
    assert not [e for e in root.iter() if e.tag.endswith("script")]
    assert any((e.text or "").startswith("finish ") for e in root.iter())


def test_nothing_is_fetched(page: str) -> None:
    reader = Reader(page)
    for tag, attrs in reader.tags:
        assert tag not in ("script", "link", "iframe", "object", "embed", "base", "form")
        for name in ("src", "href", "xlink:href", "action", "data", "poster", "srcset"):
            assert (attrs.get(name) or "#").startswith("#"), (tag, attrs)
    assert not re.search(r"@import|url\((?!#)", page)
    assert "default-src 'none'" in page


def test_it_never_says_that_something_conforms(page: str) -> None:
    text = Reader(page).text
    assert not re.search(r"\bconform(s|ed|ing|ant)\b", text, re.IGNORECASE)
    assert "NOT_REJECTED is not a pass" in text
    assert "Failing to reject is not conformance" in text


def test_every_verdict_has_word_sign_and_grounds(page: str, given: ReportInput) -> None:
    reader = Reader(page)
    assert given.decisions is not None
    for decision in given.decisions.configurations:
        assert reader.text.count(f"{words.VERDICTS[decision.verdict].sign} {decision.verdict}") >= 3
        assert words.REASONS[decision.reasons[0]] in reader.text
    assert {d.verdict for d in given.decisions.configurations} == set(words.VERDICTS) - {"DIFFERS"}
    assert "not eligible: it rests on crashes alone" in reader.text
    assert "21" in reader.text and "nothing follows a completed stop string" in reader.text
    assert "2 1 1 “baa”" in reader.text


def test_what_is_missing_is_said(page: str) -> None:
    text = Reader(page).text
    assert "1 unit was lost and not run again" in text
    assert text.count("main.watermark.on: a worker exceeded request_seconds") == 2
    assert "The network was not cut during collection: unshare: operation not permitted." in text
    assert "? NOT_DETERMINED" in text


def test_it_says_how_to_verify_by_hand(page: str) -> None:
    text = Reader(page).text
    assert "sha256sum --check seal/SHA256SUMS" in text
    assert "ssh-keygen -Y verify -f ../../trust/allowed_signers -I author@example.org" in text
    for namespace in ("prereg-seal", "prereg-ledger", "prereg-audit"):
        assert f"-n {namespace} " in text


def test_ids_are_unique_and_references_lead_somewhere(page: str) -> None:
    reader = Reader(page)
    ids = [i for _, a in reader.tags if (i := a.get("id"))]
    assert len(ids) == len(set(ids))
    for _, attrs in reader.tags:
        for name in ("href", "clip-path"):
            target = re.search(r"#([^)]+)", attrs.get(name) or "")
            assert target is None or target[1] in ids


def test_the_same_values_give_the_same_bytes(page: str) -> None:
    assert render(example()) == page


def test_a_failed_audit_is_not_hidden(given: ReportInput) -> None:
    audit = dict(given.audit or {})
    audit["result"] = "DISAGREES"
    audit["configurations"] = [
        {"id": "plain", "verdict": "FAILS", "claimed": "NOT_REJECTED", "agrees": False, "differences": ["D"]}
    ]
    audit["predictions"] = [{"id": "control", "status": "FAILED", "claimed": "HELD", "agrees": False}]
    text = Reader(render(replace(given, audit=audit))).text
    assert "✕ DISAGREES" in text
    assert "plain: the auditor derives FAILS, the analysis claims NOT_REJECTED." in text
    assert "control: the auditor derives FAILED, the analysis claims HELD." in text
    text = Reader(render(replace(given, audit=None, state="analysed"))).text
    assert "No independent audit has been recorded." in text
    assert "prereg-audit" not in text


def test_colours_follow_the_page(given: ReportInput) -> None:
    assert given.decisions is not None
    svg = gap_plot(given.decisions.configurations, 0.01)
    assert "#0102" not in svg and "var(--limit)" in svg and "var(--off)" in svg
    assert "<metadata" not in svg and "2026" not in svg
    ElementTree.fromstring(svg)


def test_idle_events_come_last() -> None:
    def row(name: str, k_off: int, k_on: int, gap: float) -> BoundRow:
        return BoundRow(
            event=name, p=None, k_off=k_off, k_on=k_on, L_off=0, U_off=0.3, L_on=0.3 + gap, U_on=0.9
        )

    found = largest([row("idle", 0, 0, 0.5), row("small", 1, 2, 0.1), row("large", 1, 5, 0.2)])
    assert [r.event for r, _ in found] == ["large", "small", "idle"]
    low = BoundRow(event="c", p=None, k_off=9, k_on=1, L_off=0.5, U_off=0.6, L_on=0.0, U_on=0.1)
    assert largest([low]) == [(low, True)]


def test_runs_of_shards_are_one_moment(given: ReportInput) -> None:
    moments = timeline(given.entries)
    assert [m.what for m in moments] == [
        "sealed", "collection started", "shards stored", "unit invalid", "collection ended", "analysis",
        "audit",
    ]  # fmt: skip
    assert moments[2].seq == "3–15"
    assert moments[2].detail.startswith("13 shards, 260,000 records, until 2026-11-29 09:15:00 UTC")
    assert moments[4].detail == "complete, 13 shards stored, 1 unit lost"


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Decoded(tokens=(1, 2), finish="stop"), "1 2 “ab” (stop)"),
        (Decoded(tokens=(1, 9), finish=None), "1 9"),
        (Decoded(tokens=(), finish="stop"), "no token (stop)"),
        (Crashed(crash="KeyError"), "crash: KeyError"),
        (Valued(value="1"), "value '1'"),
        (Valued(value=1), "value 1"),
    ],
)
def test_outcomes_in_words(outcome: law.Outcome, text: str) -> None:
    assert words.outcome(outcome, ("<end>", "a", "b")) == text


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (law.OutcomeEvent(id="e", outcome=Valued(value=2)), "value 2"),
        (law.OtherEvent(id="e"), "any other outcome"),
        (law.PrefixEvent(id="e", tokens=(1, 2)), "starts 1 2"),
        (law.LengthEvent(id="e", equals=3), "3 tokens"),
        (law.LongerEvent(id="e", than=3), "more than 3 tokens"),
        (law.FinishEvent(id="e", equals=None), "finish none"),
        (law.CrashEvent(id="e"), "crash"),
        (law.ViolationEvent(id="e"), "breaks a rule"),
        (law.SetEvent(id="e", outcomes=(), hypothesis="h-1"), "event of h-1"),
        (law.SetEvent(id="e", outcomes=(), hypothesis=None), "e"),
        (law.ValueEvent(id="e", equals="x"), "value 'x'"),
        (law.AtLeastEvent(id="e", value=2.5), "value ≥ 2.5"),
    ],
)
def test_events_in_words(event: law.Event, text: str) -> None:
    assert words.event(event) == text
    assert words.event(event, complement=True) == f"not: {text}"


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        (VerdictClaim(configuration="c", in_=("FAILS", "VOID")), "c: FAILS or VOID"),
        (CountClaim(configurations=("a", "b"), verdict="FAILS", at_least=1), "at least 1 of a, b: FAILS"),
        (CountClaim(configurations=("a",), verdict="VOID", at_most=0), "at most 0 of a: VOID"),
        (CountClaim(configurations=("a",), verdict="VOID", at_least=1, at_most=1), "exactly 1 of a: VOID"),
        (CountClaim(configurations=("a",), verdict="VOID", at_least=1, at_most=2), "1 to 2 of a: VOID"),
    ],
)
def test_claims_in_words(claim: VerdictClaim | CountClaim, text: str) -> None:
    assert words.claim(claim) == text


def test_labels_are_plain_and_short() -> None:
    assert plain("value ≥ 2 “a”") == 'value >= 2 "a"'
    assert plain("é\n\u202e") == "\\xe9?\\u202e"
    assert len(plain("x" * 100)) == 34


def pages(paths: StudyPaths) -> str:
    return write_report(paths).read_text(encoding="utf-8")


def test_the_pilots_that_were_disclosed_are_on_the_page(tmp_path: Path) -> None:
    paths = make_study(tmp_path)
    assert "holds no exploratory analysis" in pages(paths)
    line = (
        '{"configuration":{"build":"hf-5.17.0","features":{"top_k":3}},"kind":"pilot","time":"T",'
        '"tv_lower":0.25,"tv_upper":0.5,"verdict":"DEPARTS"}\n'
    )
    (paths.root / "searches.jsonl").write_text('{"kind":"search","note":"<b>"}\n' + line)
    text = pages(paths)
    assert "holds no exploratory analysis" not in text
    assert "exploratory, and part of no verdict" in text
    assert "hf-5.17.0: {&#34;top_k&#34;:3}" in text and "DEPARTS, TV 0.25 to 0.5" in text
    assert "<b>" not in Reader(text).text.replace('{"kind":"search","note":"<b>"}', "")


def test_departures_and_amendments_that_were_told_stand_before_the_verdicts(given: ReportInput) -> None:
    def entry(kind: EntryType, body: dict[str, Any]) -> Entry:
        time = "2026-11-30T09:00:00+00:00"
        return Entry(seq=9, time=time, type=kind, actor="ada", body=body, body_sha256="0" * 64, prev="0" * 64)

    told = (
        entry("amended", {"seal": "a" * 64, "previous": "b" * 64, "reason": "Fewer draws."}),
        entry("deviation", {"about": ["fair"], "text": HOSTILE}),
        entry("deviation", {"about": [], "text": "The disk was changed."}),
        entry("cosigned", {"seal": "a" * 64}),
        entry("timestamped", {"time": "2026-11-30T09:00:00+00:00"}),
        entry("pushed", {"remote": "origin", "ref": "refs/heads/main", "commit": "c" * 40}),
        entry("relocation", {"files": [{}, {}], "reason": "Too large."}),
        entry("closed", {"reason": "Published."}),
    )
    page = Reader(render(replace(given, entries=(*given.entries, *told))))
    text = " ".join(page.text.split())
    assert "The plan was amended before any data: 2026-11-30 09:00, Fewer draws. The earlier" in text
    assert f"fair: {' '.join(HOSTILE.split())} (ada, 2026-11-30 09:00)" in text
    assert "the whole study: The disk was changed." in text
    assert text.index("Departures from the protocol") < text.index("Configurations")
    for detail in ("2 files: Too large.", "Published.", "origin, refs/heads/main, commit cccccccccccc"):
        assert detail in text
    assert not [tag for tag, _ in page.tags if tag in ("script", "img")]


def test_a_page_in_every_state(tmp_path: Path) -> None:
    from prereg.analyse.run import analyse_study

    paths = make_study(tmp_path)
    assert "not yet: everything here can still change" in pages(paths)
    done = seal(paths)
    text = Reader(pages(paths)).text
    assert done.seal in text and "There are no decisions yet" in text
    fabricate_records(paths)
    assert "collected" in pages(paths)
    analyse_study(paths, key=signing_key(paths), principal="ada@example.org")
    text = Reader(pages(paths)).text
    assert "analysed" in text and "○ NOT_REJECTED" in text
    assert "prereg-seal -s seal/manifest.json.sig" in text
