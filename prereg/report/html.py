"""`prereg report`: read a study, verified unless it is still a draft, and write its page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prereg.codec.canonical import digest, loads_machine
from prereg.codec.convert import read_machine
from prereg.codec.schema import validate
from prereg.codec.study_files import AUTHORED, HYPOTHESES, parse_study
from prereg.errors import VerificationFailed
from prereg.model.seal import Entry, EntryType
from prereg.model.verdict import Decisions
from prereg.report.page import ReportInput, render
from prereg.report.searches import NAME as SEARCHES
from prereg.report.searches import searches_of
from prereg.seal.verify import verify_study
from prereg.store.files import read_in, write_whole
from prereg.store.layout import StudyPaths


def write_report(paths: StudyPaths) -> Path:
    """Write `report/index.html` and return its path. Raises what `verify_study` raises, but takes a draft."""
    page = paths.report / "index.html"
    write_whole(page, render(read_study(paths)).encode("utf-8"))
    return page


def read_study(paths: StudyPaths) -> ReportInput:
    """What the page shows, from verified bytes; the bytes of the records are left to `prereg verify`."""
    if not paths.seal.exists() and not paths.ledger.exists():
        names = [name for name in (*AUTHORED, HYPOTHESES) if (paths.root / name).exists()]
        files = {name: read_in(paths.root, name)[0] for name in names}
        return ReportInput(
            study=parse_study(files),
            seal=None,
            manifest=None,
            entries=(),
            state="draft",
            head=None,
            decisions=None,
            audit=None,
            searches=searches_of(_read(paths, SEARCHES)),
        )
    verified = verify_study(paths, records=False)
    decisions: Decisions | None = None
    audit: dict[str, Any] | None = None
    if data := _recorded(paths, verified.entries, "analysis", "decisions_sha256", "analysis/decisions.json"):
        decisions = read_machine(data, "decisions", Decisions, where="analysis/decisions.json")
    if data := _recorded(paths, verified.entries, "audit", "report_sha256", "audit/report.json"):
        value = loads_machine(data, where="audit/report.json")
        validate(value, "audit-report", where="audit/report.json")
        assert isinstance(value, dict)
        audit = value
    return ReportInput(
        study=verified.study,
        seal=verified.seal,
        manifest=verified.manifest,
        entries=verified.entries,
        state=verified.state,
        head=verified.head,
        decisions=decisions,
        audit=audit,
        searches=searches_of(verified.files),
    )


def _read(paths: StudyPaths, name: str) -> dict[str, bytes]:
    return {name: read_in(paths.root, name)[0]} if (paths.root / name).exists() else {}


def _recorded(
    paths: StudyPaths, entries: tuple[Entry, ...], kind: EntryType, field: str, name: str
) -> bytes | None:
    """The bytes of a file whose digest the last ledger entry of its kind holds; None without an entry."""
    entry = next((e for e in reversed(entries) if e.type == kind), None)
    if entry is None:
        return None
    data, _ = read_in(paths.root, name)
    if digest(data) != entry.body[field]:
        raise VerificationFailed(f"its SHA-256 is not that of ledger entry {entry.seq}", where=name)
    return data
