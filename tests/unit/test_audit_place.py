"""Where no audit may stand: it is refused before anything is written."""

from __future__ import annotations

import pytest

from prereg.analyse.run import analyse_study
from prereg.audit.run import audit_study
from prereg.errors import WrongState
from prereg.seal.tell import close_study
from prereg.seal.verify import verify_study
from prereg.store.layout import StudyPaths
from tests.unit.second_study import second, second_collected, second_collected_once, second_once
from tests.unit.study_fixture import git, signing_key

__all__ = ["second", "second_collected", "second_collected_once", "second_once"]


def audit(paths: StudyPaths) -> None:
    audit_study(paths, key=signing_key(paths, "rex"), principal="rex@example.org")


def test_an_audit_of_a_closed_study_leaves_its_report_and_signature(second_collected: StudyPaths) -> None:
    paths = second_collected
    analyse_study(paths, key=signing_key(paths), principal="ada@example.org")
    audit(paths)
    close_study(paths, "Done.", key=signing_key(paths), principal="ada@example.org")
    before = [file.read_bytes() for file in (paths.audit_report, paths.audit_signature, paths.ledger)]
    with pytest.raises(WrongState, match="closed") as refused:
        audit(paths)
    assert refused.value.next_step == f"prereg report {paths.root}"
    assert [f.read_bytes() for f in (paths.audit_report, paths.audit_signature, paths.ledger)] == before
    assert git(paths.repository, "status", "--porcelain") == ""
    assert verify_study(paths).state == "closed"


def test_an_audit_before_data_says_what_comes_first(second: StudyPaths) -> None:
    with pytest.raises(WrongState, match="the study is sealed") as refused:
        audit(second)
    assert refused.value.next_step == f"prereg collect {second.root}"
    assert not second.audit_report.exists()
