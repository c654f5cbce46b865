"""A sealed study with an exact stage, from records to decisions, audit, status, diff and page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import study_fixture
from exact_fixture import fabricate, make_exact_study
from study_fixture import git, signing_key
from typer.testing import CliRunner

from prereg.analyse.run import analyse_study
from prereg.audit.run import audit_study, disagreements
from prereg.cli.app import app
from prereg.cli.main import run as _register  # noqa: F401
from prereg.codec.canonical import dump_file
from prereg.model.verdict import Decisions
from prereg.report.html import write_report
from prereg.seal.compare import diff_study
from prereg.seal.verify import verify_report
from prereg.store.layout import StudyPaths


def collected(tmp_path: Path, invalid: dict[str, str] | None = None, **more: Any) -> StudyPaths:
    paths = make_exact_study(tmp_path, **more)
    study_fixture.seal(paths)
    fabricate(paths, invalid=invalid or {})
    return paths


def analyse(paths: StudyPaths, **more: Any) -> Decisions:
    return analyse_study(paths, key=signing_key(paths, "ada"), principal="ada@example.org", **more)


def run(*words: str) -> tuple[int, dict[str, Any]]:
    done = CliRunner().invoke(app, [*words, "--json"])
    return done.exit_code, json.loads(done.stdout or "{}")


def alone(protocol: dict[str, Any]) -> None:
    protocol["stages"] = protocol["stages"][1:]
    protocol["sampling"] = {}
    protocol["decision"] = {"rule": "exact", "threshold": 0, "calibration_allowance": None}
    protocol["exact"]["premise_alpha"] = None


def test_from_records_to_an_audit(tmp_path: Path) -> None:
    paths = collected(tmp_path)
    said: list[tuple[str, int, int]] = []
    found = analyse(paths, progress=lambda *step: said.append(step))
    assert found.exact is not None and found.exact.premise is not None
    assert [(d.id, d.verdict) for d in found.configurations] == [("same", "NOT_REJECTED")]
    assert [(d.id, d.verdict) for d in found.exact.configurations] == [
        ("other", "DEPARTS"), ("same", "EQUAL_WITHIN_TOLERANCE"),
    ]  # fmt: skip
    assert found.exact.configurations[0].tv_upper == pytest.approx(0.5)
    assert [t.status for t in found.exact.premise.configurations] == ["NOT_REJECTED"]
    assert [p.status for p in found.predictions] == ["HELD", "HELD"]
    assert [read for _, read, _ in said] == [400, 800, 804, 808, 812, 816]
    assert {total for _, _, total in said} == {816}
    assert analyse(paths) == found
    assert {s.status for s in verify_report(paths)} == {"ok"}

    code, status = run("status", str(paths.root))
    assert (code, status["draws"], status["leaves"], status["shards"]) == (0, 800, 16, 8)
    assert status["verdicts"] == {
        "same": {"draws": "NOT_REJECTED", "exact": "EQUAL_WITHIN_TOLERANCE", "premise": "NOT_REJECTED"},
        "other": {"exact": "DEPARTS"},
    }
    audit = audit_study(paths, key=signing_key(paths, "rex"), principal="rex@example.org")
    assert audit.result == "AGREES", audit.text
    page = write_report(paths).read_text(encoding="utf-8")
    assert "EQUAL_WITHIN_TOLERANCE" in page and "The exact channel" in page


def test_an_exact_stage_alone(tmp_path: Path) -> None:
    claim = {
        "kind": "count", "configurations": ["other", "same"], "verdict": "DEPARTS", "at_least": 1,
        "at_most": 1, "channel": "exact",
    }  # fmt: skip
    prediction = {"id": "one", "statement": "One of them departs.", "claim": claim}
    paths = collected(tmp_path, change=alone, predictions=[prediction])
    found = analyse(paths)
    assert (found.m, found.configurations) == (0, ())
    assert found.exact is not None and found.exact.premise is None
    assert [(p.id, p.status) for p in found.predictions] == [("one", "HELD")]
    audit = audit_study(paths, key=signing_key(paths, "rex"), principal="rex@example.org")
    assert audit.result == "AGREES", audit.text
    assert "By draws" not in write_report(paths).read_text(encoding="utf-8")


def test_a_lost_tree_is_invalid_and_audited_so(tmp_path: Path) -> None:
    paths = collected(tmp_path, invalid={"walked.other.on": "the worker ended"})
    found = analyse(paths)
    assert found.exact is not None
    lost, _ = found.exact.configurations
    assert (lost.id, lost.verdict) == ("other", "INVALID")
    assert found.predictions[0].status == "NOT_DETERMINED"
    audit = audit_study(paths, key=signing_key(paths, "rex"), principal="rex@example.org")
    assert audit.result == "AGREES", audit.text


def test_diff_shows_a_verdict_that_was_turned(tmp_path: Path) -> None:
    paths = collected(tmp_path)
    analyse(paths)
    assert diff_study(paths).decisions == ()
    value = json.loads(paths.decisions.read_bytes())
    value["exact"]["configurations"][0]["verdict"] = "EQUAL_WITHIN_TOLERANCE"
    paths.decisions.write_bytes(dump_file(value))
    turned = "/exact/configurations/0/verdict: 'DEPARTS' became 'EQUAL_WITHIN_TOLERANCE'"
    assert diff_study(paths).decisions == (turned,)
    code, said = run("diff", str(paths.root))
    assert (code, said["decisions"]) == (1, [turned])
    assert run("status", str(paths.root))[1]["verdicts"] is None
    paths.decisions.write_bytes(b"{")
    assert len(diff_study(paths).decisions) == 1
    paths.decisions.unlink()
    assert diff_study(paths).decisions == ("the file of ledger entry 12 is missing",)
    git(paths.repository, "checkout", "--", str(paths.decisions))
    assert diff_study(paths).decisions == ()


def test_diff_names_decisions_without_an_analysis(tmp_path: Path) -> None:
    paths = collected(tmp_path)
    paths.decisions.parent.mkdir()
    paths.decisions.write_bytes(b"{}\n")
    assert diff_study(paths).decisions == ("there is a file of decisions, and no analysis in the ledger",)


def test_what_the_auditor_derives_otherwise_is_named() -> None:
    row = {"id": "c", "claimed": "NOT_REJECTED", "agrees": False, "differences": ["D", "masses"]}
    value: dict[str, Any] = {
        "steps": [], "configurations": [{**row, "verdict": "FAILS"}], "predictions": [],
        "exact": [{**row, "verdict": "VOID"}, {**row, "id": "d", "verdict": "VOID", "agrees": True}],
        "premise": [{**row, "status": "FAILS"}],
    }  # fmt: skip
    assert disagreements(value) == [
        "c: derived FAILS, claimed NOT_REJECTED; D; masses",
        "c (exact): derived VOID, claimed NOT_REJECTED; D; masses",
        "c (premise): derived FAILS, claimed NOT_REJECTED; D; masses",
    ]
    assert disagreements({"steps": [], "configurations": [], "predictions": []}) == []
