"""`check` where a seal could not be made or completed: signers, keys, builds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prereg.cli.check import run_check, unbuilt
from prereg.collect import quarters
from prereg.draft.lint import CheckReport, check_study
from prereg.store.layout import StudyPaths
from tests.unit.signing_fixture import asked_study, write_protocol


def check(paths: StudyPaths) -> CheckReport:
    return check_study(paths, rates={}, harness_sha256="0" * 64)


def found(report: CheckReport) -> list[tuple[str, str]]:
    return [(f.severity, f.where) for f in report.findings if "signers" in f.where]


def test_a_signer_without_an_author_s_key_is_an_error(tmp_path: Path) -> None:
    paths = asked_study(tmp_path, signers=(2, "ada", "bob"))
    assert found(check(paths)) == []
    at = "protocol.json#/signers"
    for name in ("zed", "rex"):  # nobody, and a reviewer
        signers = {"need": 2, "principals": ["ada@example.org", f"{name}@example.org"]}
        write_protocol(paths, {"signers": signers})
        assert found(check(paths)) == [("error", f"{at}/principals/1"), ("error", f"{at}/need")]
    (paths.allowed_signers).unlink()
    assert found(check(paths)) == [("error", at)]


def test_a_build_that_is_not_made_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = check(asked_study(tmp_path))
    monkeypatch.setattr(quarters, "built", lambda build: None)
    (finding,) = unbuilt(report)
    assert (finding.severity, finding.next_step) == ("warning", "prereg build plain")
    monkeypatch.setattr(quarters, "built", lambda build: tmp_path)
    assert unbuilt(report) == ()


def test_events_of_a_study_without_oracle_are_written_by_hand(tmp_path: Path) -> None:
    paths = asked_study(tmp_path)
    paths.events.unlink()
    (finding,) = [f for f in check(paths).findings if f.where == "events.json"]
    assert "by hand" in str(finding.next_step)


def test_a_finding_s_command_names_the_study(tmp_path: Path) -> None:
    paths = asked_study(tmp_path)
    value = json.loads(paths.protocol.read_text())
    write_protocol(paths, {"decision": {**value["decision"], "rule": "channel-S"}})
    paths.events.unlink()
    (finding,) = [f for f in run_check(paths).findings if f.where == "events.json"]
    assert str(finding.next_step).startswith("prereg events /")
