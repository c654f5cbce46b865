"""What `prereg status` tells people: of attempts, and of what comes next."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import study_fixture
from third_fixture import collect_third, make_third_study

from prereg.cli.check import check
from prereg.cli.close import close
from prereg.cli.draft import draft
from prereg.cli.key import revoke
from prereg.cli.status import status
from prereg.seal.tell import close_study, deviate_study
from prereg.store.layout import StudyPaths
from prereg.store.repo import Repo
from tests.unit.second_study import make_second


def test_status_tells_whose_failures_there_were_and_what_came_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = make_third_study(tmp_path)
    study_fixture.seal(paths)
    collect_third(paths)
    status(paths.root)
    told = capsys.readouterr().err
    lines = [" ".join(line.replace("│", " ").split()) for line in told.splitlines()]
    failures = [line.split(" ", 2)[2] for line in lines if "unit-invalid" in line]
    assert failures == [
        "unit-invalid: drawn.same.on, attempt 1 col@example.org",
        "unit-invalid: walked.other.on, attempt 1 col@example.org",
        "unit-invalid: walked.same.on, attempt 1 col@example.org",
    ]
    assert "drawn.same.on 2 of 2 stored whole engine: it broke" in lines
    assert "left open walked.same.on: it broke" in lines
    assert (
        "stored 7 shards, 800 draws, 12 leaves of trees "
        "(of the attempts that count; of every attempt 8 shards, 1,000 draws)" in lines
    )


def next_of(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    status(folder)
    return capsys.readouterr().err.splitlines()[-1].removeprefix("Next: ").replace(str(folder), "DIR")


def test_what_comes_next_can_be_typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = study_fixture.make_study(tmp_path)
    assert next_of(paths.root, capsys) == "prereg seal DIR --key KEY"
    study_fixture.seal(paths)
    assert next_of(paths.root, capsys) == "prereg collect DIR --key KEY"


def test_a_draft_with_blanks_is_checked_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "studies" / "mine"
    draft(folder, "two-arm", title="T", question="Q?", author="Ada", principal=None)
    assert "fill the 1 blank (the principal) in" in " ".join(capsys.readouterr().err.split())
    assert next_of(folder, capsys) == "prereg check DIR"


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({"title": None, "question": None, "principal": "ada@example.org"}, "fill the 2 blanks (<<FILL…) in"),
        ({"title": None, "question": None, "principal": None}, "3 blanks (<<FILL…, and the principal) in"),
    ],
)
def test_draft_names_the_blanks_that_there_are(
    given: dict[str, str | None], asked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draft(tmp_path / "studies" / "mine", "two-arm", author="Ada", **given)
    assert asked in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("edition", "last"),
    [
        (1, "The study is sealed, and its plan cannot be changed any more: there is nothing to do here."),
        (2, "until there are data, prereg amend DIR --reason WHY --key KEY"),
    ],
)
def test_check_does_not_send_a_sealed_study_to_be_sealed(
    edition: int, last: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = study_fixture.make_study(tmp_path) if edition == 1 else make_second(tmp_path)
    study_fixture.seal(paths)
    check(paths.root, rehearsal=False)
    said = " ".join(capsys.readouterr().err.split())
    assert "may be sealed" not in said and said.replace(str(paths.root), "DIR").endswith(last)


def test_a_key_that_is_compromised_is_told_what_a_stamp_saves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = study_fixture.make_study(tmp_path)
    fingerprint = study_fixture.signing_key(paths, "ada").fingerprint
    revoke(fingerprint, reason="compromised", note="Stolen.", at=None, repository=paths.repository)
    said = " ".join(capsys.readouterr().err.split())
    assert "counts any more" not in said
    assert "In edition 3 also by stamps of ledger heads (prereg timestamp DIR --head)" in said


def test_close_says_how_its_entry_is_sent_where_there_is_a_remote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = make_second(tmp_path)
    study_fixture.seal(paths)
    Repo.find(paths.repository).call(["remote", "add", "origin", str(tmp_path / "bare")])
    close(paths.root, reason="Enough.", unfinished=True, key=str(paths.repository.parent / "keys" / "ada"))
    assert "git push origin HEAD" in capsys.readouterr().err


def closed_with(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> StudyPaths:
    """A study whose deviation and end say this, with its status on the terminal."""
    paths = make_third_study(tmp_path)
    study_fixture.seal(paths)
    key = study_fixture.signing_key(paths)
    deviate_study(paths, text, key=key, principal="ada@example.org")
    close_study(paths, text, unfinished=True, key=key, principal="ada@example.org")
    capsys.readouterr()
    status(paths.root)
    return paths


def test_what_others_wrote_does_not_reach_the_terminal_as_orders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "gone\x1b[2K\x9b2J\u202eback"
    paths = closed_with(evil, tmp_path, capsys)
    told = capsys.readouterr().err
    assert told.count("gone\\x1b[2K\\x9b2J\\u202eback") == 2
    status(paths.root, as_json=True)
    out = capsys.readouterr().out
    assert json.loads(out)["closed"] == evil
    assert not {"\x1b", "\x9b", "\u202e"} & {*told, *out}


def test_the_lines_of_a_text_do_not_pass_for_lines_of_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    closed_with("Over.\n  audit        AGREES\nNext: nothing", tmp_path, capsys)
    lines = capsys.readouterr().err.splitlines()
    assert not any(line.startswith(("  audit", "Next: nothing")) for line in lines)
    assert sum(line.startswith(" " * 15) and "audit        AGREES" in line for line in lines) == 2
