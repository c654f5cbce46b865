"""An audit that was killed: the next one of the same reviewer completes it, and signs nothing else."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from study_fixture import fabricate_records, git, make_study, seal, signing_key

from prereg.analyse.run import analyse_study
from prereg.audit import run
from prereg.audit.run import AuditRun, audit_study
from prereg.codec.canonical import digest, dump_file, loads_machine
from prereg.errors import PreregError, VerificationFailed
from prereg.seal import finish
from prereg.seal.trust import AUDIT
from prereg.seal.verify import verify_report, verify_study
from prereg.store.layout import StudyPaths
from prereg.store.ledger import append, head_of


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def analysed(tmp_path: Path) -> StudyPaths:
    paths = make_study(tmp_path, draws=40, rows=2, shard_requests=60)
    seal(paths)
    fabricate_records(paths)
    analyse_study(paths, key=signing_key(paths), principal="ada@example.org")
    return paths


def audit(paths: StudyPaths, *, without_history: bool = False) -> AuditRun:
    key = signing_key(paths, "rex")
    return audit_study(paths, key=key, principal="rex@example.org", without_history=without_history)


def sound(paths: StudyPaths) -> bool:
    everything = {step.status for step in verify_report(paths)} == {"ok"}
    return everything and git(paths.repository, "status", "--porcelain") == ""


def count(paths: StudyPaths) -> int:
    return [entry.type for entry in verify_study(paths).entries].count("audit")


def cut_at(nth: int, real: Callable[..., Any]) -> Callable[..., Any]:
    """The function, but the process ends instead of the N-th call."""
    calls = iter(range(nth))

    def called(*given: Any, **named: Any) -> Any:
        if next(calls, None) is None:
            raise Killed
        return real(*given, **named)

    return called


CUTS = [
    (run, "write_whole", 1, False), (run, "append", 0, False), (run, "sign_head_and_commit", 0, True),
    (finish, "write_whole", 1, True), (finish, "trailers", 0, True),
]  # fmt: skip


@pytest.mark.parametrize(("place", "name", "nth", "entered"), CUTS)
def test_a_killed_audit_is_completed(
    analysed: StudyPaths, monkeypatch: pytest.MonkeyPatch, place: Any, name: str, nth: int, entered: bool
) -> None:
    for before in (0, 1):
        waived = bool(before)  # or the second would find what the first did
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(place, name, cut_at(nth, getattr(place, name)))
            audit(analysed, without_history=waived)
        report = analysed.audit_report.read_bytes()
        assert audit(analysed, without_history=waived).result == "AGREES"
        assert (analysed.audit_report.read_bytes() == report) == entered
        assert count(analysed) == before + 1
        assert sound(analysed)


def test_an_audit_that_finds_the_same_is_not_entered_again(analysed: StudyPaths) -> None:
    """Whoever runs a killed audit again may not know that it had come to its end."""
    first = audit(analysed)
    commit = git(analysed.repository, "rev-parse", "HEAD")
    second = audit(analysed)
    assert (second.report, second.stands, first.stands) == (first.report, True, False)
    assert (count(analysed), git(analysed.repository, "rev-parse", "HEAD")) == (1, commit)
    assert audit(analysed, without_history=True).report != first.report
    assert count(analysed) == 2 and sound(analysed)


def test_an_audit_after_another_study_came_beside_is_entered(analysed: StudyPaths) -> None:
    """It looked at seeds that the audit before did not know."""
    first = audit(analysed)
    beside = analysed.root.with_name("beside")
    shutil.copytree(
        analysed.root, beside, ignore=shutil.ignore_patterns("seal", "ledger*", "records", "a*t*")
    )
    seeds = beside / "seeds.json"
    value = json.loads(seeds.read_bytes())
    for block in value["blocks"]:
        block |= {end: str(int(block[end]) + 10**9) for end in ("first", "end")}
    seeds.write_text(json.dumps(value))
    git(analysed.repository, "add", "-A")
    git(analysed.repository, "commit", "-q", "-m", "Another study")
    again = audit(analysed)
    assert not again.stands and again.report != first.report
    assert count(analysed) == 2


@pytest.mark.parametrize(
    "name",
    ["audit/.report.json.7.partial", "audit/.report.json.sig.7.partial", ".ledger.head.json.7.partial"],
)
def test_an_unfinished_file_and_a_torn_line_are_gone(analysed: StudyPaths, name: str) -> None:
    analysed.audit_report.parent.mkdir(exist_ok=True)
    (analysed.root / name).write_bytes(b"{")
    with analysed.ledger.open("ab") as ledger:
        ledger.write(b'{"actor":"rex@exa')
    assert audit(analysed).result == "AGREES"
    assert sound(analysed)


def forged(paths: StudyPaths, who: str, **changes: Any) -> None:
    """An audit entered in the reviewer's name, whose report says what was never derived."""
    run_ = run.run_auditor(paths)
    report = dump_file({**run_.value, **changes})
    signature = signing_key(paths, who).sign(report, namespace=AUDIT)
    paths.audit_report.parent.mkdir(exist_ok=True)
    paths.audit_report.write_bytes(report)
    paths.audit_signature.write_bytes(signature)
    value: Any = loads_machine(report, where="report")
    body = {
        "seal": value["seal"],
        "report_sha256": digest(report),
        "signature_sha256": digest(signature),
        "result": "AGREES",
    }
    append(paths, "audit", body, "rex@example.org")


@pytest.mark.parametrize(
    ("who", "changes"),
    [
        ("ada", {}),
        ("rex", {"result": "DISAGREES"}),
        ("rex", {"ledger_head": "0" * 64}),
        ("rex", {"study": "x"}),
    ],
)
def test_an_audit_in_the_reviewer_s_name_is_not_signed(
    analysed: StudyPaths, who: str, changes: dict[str, Any]
) -> None:
    forged(analysed, who, **changes)
    head = analysed.head_signature.read_bytes()
    with pytest.raises(VerificationFailed, match="says that rex@"):
        audit(analysed)
    assert analysed.head_signature.read_bytes() == head


def test_a_report_that_was_committed_is_not_taken_back(analysed: StudyPaths) -> None:
    """A report without an entry that a commit holds is evidence of something else."""
    report = dump_file(
        {**run.run_auditor(analysed).value, "ledger_head": head_of(analysed.ledger.read_bytes())}
    )
    analysed.audit_report.parent.mkdir(exist_ok=True)
    analysed.audit_report.write_bytes(report)
    git(analysed.repository, "add", "studies")
    git(analysed.repository, "commit", "-q", "-m", "By hand")
    assert audit(analysed).result == "FAILED"
    assert analysed.audit_report.read_bytes() == report


def test_a_ledger_that_is_no_chain_is_left_to_the_auditor(analysed: StudyPaths) -> None:
    analysed.ledger.write_bytes(analysed.ledger.read_bytes().replace(b'"seq":2', b'"seq":3', 1))
    assert audit(analysed).result == "FAILED"


def test_an_error_of_the_ledger_s_end_is_told(analysed: StudyPaths) -> None:
    """The signed head says that the line was whole: that is no killed write."""
    data = analysed.ledger.read_bytes()
    analysed.ledger.write_bytes(data[:-5])
    assert audit(analysed).result == "FAILED"
    with pytest.raises(PreregError, match="the head names entry"):
        analyse_study(analysed, key=signing_key(analysed), principal="ada@example.org")
    assert analysed.ledger.read_bytes() == data[:-5]
