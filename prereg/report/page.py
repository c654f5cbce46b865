"""The page of a study, one file that needs nothing else (docs/formats.md section 2, `report/`).

The page is derived from values that were verified elsewhere and is never evidence itself. The same values
give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prereg.codec.canonical import dumps
from prereg.codec.convert import to_json
from prereg.model.exact import ExactDecision
from prereg.model.places import deviations_of
from prereg.model.seal import Entry, Manifest, State
from prereg.model.study import Study
from prereg.model.verdict import Decision, Decisions
from prereg.model.visible import visible
from prereg.report import beside_rows, exact_rows, shown, tried, words
from prereg.report.history import timeline
from prereg.report.plots import event_plot, gap_plot, law_plot
from prereg.report.searches import Search
from prereg.stats.records import record_events

TEMPLATES = Path(__file__).resolve().parent / "templates"
WITNESSES = 12
"""Witnesses that the page lists for one configuration; the rest are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInput:
    """Everything that the page is made from."""

    study: Study
    seal: str | None
    """The seal digest, or None for a draft."""
    manifest: Manifest | None
    entries: Sequence[Entry]
    state: State
    head: str | None
    """The ledger's head."""
    decisions: Decisions | None
    audit: Mapping[str, Any] | None
    """The audit report as JSON, already validated."""
    searches: Sequence[Search] = ()
    """What was looked at before the seal."""


def render(given: ReportInput) -> str:
    """The whole page. Text from the study is escaped; only our own drawings go in as they are."""
    import jinja2
    import markupsafe

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        name: getattr(shown, name) for name in ("count", "mass", "number", "tiny", "unstopped", "when")
    }
    protocol, decisions = given.study.protocol, given.decisions
    plots: dict[str, markupsafe.Markup] = {}
    laws: dict[str, markupsafe.Markup] = {}
    overview = None
    if decisions is not None:
        if decisions.configurations:
            overview = markupsafe.Markup(gap_plot(decisions.configurations, protocol.decision.threshold))
        for e in () if decisions.exact is None else decisions.exact.configurations:
            if e.masses:
                laws[e.id] = markupsafe.Markup(_law_plot(given.study, e))
        for d in decisions.configurations:
            if d.bounds:
                events = given.study.events.configurations[d.id].events
                plots[d.id] = markupsafe.Markup(event_plot(d, events, protocol.decision.threshold))
    return environment.get_template("report.html.j2").render(
        given=given,
        protocol=protocol,
        decisions=decisions,
        rows=[] if decisions is None else [_row(given, d) for d in decisions.configurations],
        overview=overview,
        plots=plots,
        style=markupsafe.Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
        timeline=timeline(given.entries),
        lost=tried.lost(given.entries, protocol),
        tried_again=tried.tried_again(given.entries, protocol),
        predictions=_predictions(given),
        words=words,
        tallies=[] if decisions is None else tried.tallies(decisions.configurations, words.VERDICTS),
        beside=beside_rows.rows(given.study, decisions),
        exact_rows=[] if decisions is None else exact_rows.rows(given.study, decisions),
        exact_tallies=exact_rows.tallies(decisions),
        laws=laws,
        networks=_networks(given.entries),
        amendments=[e for e in given.entries if e.type == "amended"],
        deviations=deviations_of(given.entries),
        families=[
            (c.id, len(given.study.events.configurations[c.id].events), len(record_events(c)))
            for c in protocol.drawn()
        ],
    )


def _shown(value: object) -> object:
    """Text that no browser obeys; our own drawings, which are no text of a study, go in as they are."""
    return visible(value) if type(value) is str else value


def _row(given: ReportInput, decision: Decision) -> dict[str, Any]:
    """What the page shows of one configuration."""
    configuration = given.study.protocol.configuration(decision.id)
    family = {e.id: e for e in given.study.events.configurations[decision.id].events}
    statements = {p.id: p for p in given.study.predicates.predicates}
    vocabulary = exact_rows.vocabulary_of(given.study, configuration)
    calibration = decision.calibration
    return {
        "decision": decision,
        "configuration": configuration,
        "word": tried.word_of(decision),
        "tried": tried.beside(decision, exact_rows.arms_of(given.study)),
        "differing": tried.differing(decision),
        "reasons": "; ".join(words.REASONS[r] for r in decision.reasons),
        "gap_event": None
        if decision.D_event is None
        else words.event(family[decision.D_event], bool(decision.D_complement)),
        "witness_draws": sum({dumps(to_json(w.outcome)): w.count for w in decision.witnesses}.values()),
        "witnesses": [
            (words.outcome(w.outcome, vocabulary), statements[w.predicate], w.count)
            for w in decision.witnesses[:WITNESSES]
        ],
        "more_witnesses": max(0, len(decision.witnesses) - WITNESSES),
        "calibration_event": None
        if calibration is None
        else words.event(family[calibration.event], calibration.complement),
        "events": [(row, words.event(family[row.event])) for row in decision.bounds],
    }


def _law_plot(study: Study, decision: ExactDecision) -> str:
    """The two laws over the heaviest outcomes of a configuration that has them."""
    vocabulary = exact_rows.vocabulary_of(study, study.protocol.configuration(decision.id))
    events = study.events.configurations[decision.id].events
    slack = (decision.unexplored.off or 0.0, decision.unexplored.on or 0.0)
    return law_plot(decision.id, exact_rows.heaviest(decision, events, vocabulary), slack)


def _predictions(given: ReportInput) -> list[tuple[Any, str, words.Word | None, str | None]]:
    """Each registered prediction with its claim in words and, once analysed, its status."""
    status = {} if given.decisions is None else {p.id: p.status for p in given.decisions.predictions}
    return [
        (p, words.claim(p.claim), words.STATUSES[status[p.id]] if p.id in status else None, status.get(p.id))
        for p in given.study.predictions.predictions
    ]


def _networks(entries: Sequence[Entry]) -> list[tuple[str, str | None]]:
    """Whether the network was cut, for each start of a collection, without repeats."""
    found = [(e.body["network"], e.body["network_reason"]) for e in entries if e.type == "collection-started"]
    return list(dict.fromkeys(found))
