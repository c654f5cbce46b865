"""A sealed study of edition 2, from files to records, decisions and an audit that comes to the same."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import exact_fixture
import pytest
import study_fixture
from second_fixture import second_files, second_protocol, second_study
from study_fixture import git, signing_key

from prereg.analyse.run import analyse_study
from prereg.audit.run import audit_study
from prereg.cli.check import as_value, show
from prereg.codec.convert import from_json
from prereg.codec.study_files import HYPOTHESES
from prereg.draft.lint import check_study
from prereg.draft.lint_beside import beside_findings
from prereg.errors import VerificationFailed
from prereg.model.law import Decoded, RecordEntry
from prereg.model.plan import Shard
from prereg.model.record import Record
from prereg.model.study import Study
from prereg.report.html import write_report
from prereg.seal.verify import verify_study
from prereg.stats.beside import mechanism_table, records_table
from prereg.store.harness import harness_digest
from prereg.store.layout import StudyPaths

PLAIN = exact_fixture.records_of
FILES = second_files()
REPLAY = {
    tuple(row["prefix"]): from_json(row["entry"], RecordEntry, where="x")
    for row in FILES["events.json"]["configurations"]["same"]["records"]
}


def told(seal: str, shard: Shard) -> list[Record]:
    """The draws of the other fixture, with the record that the reference has; every second one wrong on."""
    found = []
    for record in PLAIN(seal, shard):
        assert isinstance(record.outcome, Decoded)
        entries = [REPLAY[record.outcome.tokens[:i]] for i in range(2)]
        if shard.unit.arm == "on" and record.draw % 2:
            entries[1] = dataclasses.replace(entries[1], values=("-inf", entries[1].values[1]))
        found.append(dataclasses.replace(record, record=tuple(entries)))
    return found


def drafted(tmp_path: Path) -> StudyPaths:
    paths = exact_fixture.make_exact_study(tmp_path)
    for name, value in second_files(second_protocol()).items():
        (paths.root / name).write_text(json.dumps(value, indent=1))
    git(paths.repository, "add", "studies")
    git(paths.repository, "commit", "-q", "-m", "Edition 2")
    return paths


def collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyPaths:
    paths = drafted(tmp_path)
    study_fixture.seal(paths)
    monkeypatch.setattr(exact_fixture, "records_of", told)
    exact_fixture.fabricate(paths)
    return paths


def test_from_records_to_an_audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = collected(tmp_path, monkeypatch)
    assert HYPOTHESES in {f.path for f in verify_study(paths).manifest.files}
    found = analyse_study(paths, key=signing_key(paths, "ada"), principal="ada@example.org")
    (same,) = found.configurations
    assert same.verdict == "NOT_REJECTED"
    assert same.records is not None and same.records.verdict == "FAILS"
    assert [(b.event, b.k_off, b.k_on) for b in same.records.bounds] == [
        ("any", 0, 200), ("position-1", 0, 0), ("position-2", 0, 200),
    ]  # fmt: skip
    assert same.hypothesis is not None and same.hypothesis.status == "NOT_COMPATIBLE"
    assert same.exposed is not None and same.exposed.draws == 400
    again = analyse_study(paths, key=signing_key(paths, "ada"), principal="ada@example.org")
    assert again == found
    verify_study(paths)
    audit = audit_study(paths, key=signing_key(paths, "rex"), principal="rex@example.org")
    assert audit.result == "AGREES", audit.text
    assert "A failure of records alone." in write_report(paths).read_text("utf-8")


def test_records_without_what_the_protocol_asks_for_are_refused(tmp_path: Path) -> None:
    paths = drafted(tmp_path)
    study_fixture.seal(paths)
    exact_fixture.fabricate(paths)
    with pytest.raises(VerificationFailed, match="#/record: is missing"):
        verify_study(paths)


def test_check_counts_record_events_and_names_mechanisms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    report = check_study(drafted(tmp_path), rates={}, harness_sha256=harness_digest())
    assert [f.what for f in report.findings if f.severity == "error"] == []
    assert [(s.configuration, s.B, s.records) for s in report.spent] == [("same", 40, 12)]
    assert report.spent[0].alpha == pytest.approx(0.05)
    (records,) = report.records
    assert (records.configuration, records.events, records.reference) == ("same", 3, "replay")
    assert records.detectable is not None and 0 < records.detectable < 0.1
    rows = [(r.configuration, r.hypothesis, r.cause, r.priority, r.level) for r in report.mechanisms]
    assert rows == [("same", "H-D1-phys", "buffer", 1, 0.05 / 14), ("other", "H-D1-phys", "buffer", 2, None)]
    assert [(r.distance, r.power is None) for r in report.mechanisms] == [(0.5, False), (0.5, True)]
    monkeypatch.setenv("COLUMNS", "200")
    show(report)
    said = capsys.readouterr().err
    assert "H-D1-phys" in said and "of them records" in said and "smallest rate of mismatches" in said
    assert as_value(report)["mechanisms"][0]["cause"] == "buffer"


def finding(study: Study) -> list[tuple[str, str]]:
    records, mechanisms = records_table(study), mechanism_table(study)
    return [(f.severity, f.what.split(": ")[-1]) for f in beside_findings(study, records, mechanisms)]


def test_what_could_show_nothing_is_told_before_the_seal() -> None:
    study = second_study()
    assert finding(study) == []
    few = {a: dataclasses.replace(s, draws=2, rows=1) for a, s in study.protocol.sampling.items()}
    small = dataclasses.replace(study, protocol=dataclasses.replace(study.protocol, sampling=few))
    said = finding(small)
    assert said[0] == ("error", "not even records that never match would be seen to fail")
    assert said[1][0] == "warning" and "which the bound on A_H would show" in said[1][1]

    family = study.events.configurations["other"]
    assert family.hypothesis is not None and family.reference is not None
    same = dataclasses.replace(
        family, hypothesis=dataclasses.replace(family.hypothesis, law=family.reference)
    )
    events = dataclasses.replace(study.events, configurations={**study.events.configurations, "other": same})
    assert finding(dataclasses.replace(study, events=events)) == [("warning", "compatible would say nothing")]

    def none(p: dict[str, Any]) -> None:
        p["configurations"][0]["records"]["reference"] = "none"

    bare = second_study(none, lambda f: f["events.json"]["configurations"]["same"].pop("records"))
    assert finding(bare) == [("warning", "channel R can only be INCOMPLETE")]
