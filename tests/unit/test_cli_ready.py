"""What stands against a seal is said before the rehearsal, which may take minutes."""

from __future__ import annotations

from pathlib import Path

import pytest

from prereg.cli import check
from prereg.cli.seal import seal as seal_verb
from prereg.errors import WrongState
from prereg.seal.trust import Untrusted
from prereg.store.layout import StudyPaths
from tests.unit.study_fixture import make_study, seal


@pytest.fixture
def draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyPaths:
    def rehearsed(*_: object) -> None:
        raise AssertionError("the rehearsal ran")

    monkeypatch.setattr(check, "run_rehearsal", rehearsed)
    return make_study(tmp_path)


def sealed_by(paths: StudyPaths, who: str, principal: str | None = None) -> None:
    key = str(paths.repository.parent / "keys" / who)
    seal_verb(paths.root, key=key, principal=principal, timestamp=None, push=None, as_json=True)


def test_a_signer_who_is_no_author_is_refused_before_the_rehearsal(draft: StudyPaths) -> None:
    with pytest.raises(Untrusted, match="no role author"):
        sealed_by(draft, "rex")
    with pytest.raises(Untrusted, match=r"is not ada@example\.org's"):
        sealed_by(draft, "rex", "ada@example.org")


def test_uncommitted_changes_and_a_seal_are_found_before_the_rehearsal(draft: StudyPaths) -> None:
    notes = draft.root / "NOTES.md"
    before = notes.read_bytes()
    notes.write_bytes(before + b"more\n")
    with pytest.raises(WrongState, match="differs from what is committed"):
        sealed_by(draft, "ada")
    notes.write_bytes(before)
    with pytest.raises(AssertionError, match="rehearsal ran"):
        sealed_by(draft, "ada")
    seal(draft)
    with pytest.raises(WrongState, match="the study is sealed"):
        sealed_by(draft, "ada")
