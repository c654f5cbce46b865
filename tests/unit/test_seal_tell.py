"""Deviations and the end of a study: what is entered, by whom, where, and after a kill (section 19)."""

from __future__ import annotations

from typing import Any

import pytest

from prereg.analyse.run import analyse_study
from prereg.codec.canonical import value_digest
from prereg.collect.gates import refuse_unsigned_of_others
from prereg.errors import EvidenceIncomplete, PreregError, UsageError, VerificationFailed, WrongState
from prereg.model.seal import Entry
from prereg.seal import finish
from prereg.seal.tell import close_study, deviate_study
from prereg.seal.trust import Untrusted
from prereg.seal.verify import verify_study
from prereg.store.layout import StudyPaths
from prereg.store.ledger import append, read_ledger
from tests.unit.seal_kit import enter, fails
from tests.unit.seal_kit import finish as sign
from tests.unit.second_study import second, second_collected, second_collected_once, second_once
from tests.unit.study_fixture import fabricate_records, git, signing_key

__all__ = ["second", "second_collected", "second_collected_once", "second_once"]


def deviate(paths: StudyPaths, text: str = "Another host.", *about: str, who: str = "ada") -> Entry:
    return deviate_study(
        paths, text, about=about, key=signing_key(paths, who), principal=f"{who}@example.org"
    )


def close(paths: StudyPaths, who: str = "ada", *, unfinished: bool = True) -> Entry:
    key = signing_key(paths, who)
    return close_study(paths, "Done.", unfinished=unfinished, key=key, principal=f"{who}@example.org")


def ledger(paths: StudyPaths) -> tuple[Entry, ...]:
    return read_ledger(paths.ledger.read_bytes())


def test_a_deviation_is_entered_signed_and_committed(second: StudyPaths) -> None:
    entry = deviate(second, "  Cafe\u0301,\r\nclosed. ", "fair", "main.fair.old", "fair")
    verified = verify_study(second)
    assert entry.body == {
        "seal": verified.seal,
        "about": ["fair", "main.fair.old"],
        "text": "Caf\u00e9,\nclosed.",
    }
    assert (verified.state, verified.entries[-1]) == ("sealed", entry)
    message = git(second.repository, "log", "-1", "--format=%B")
    assert f"Prereg-Seal: {verified.seal}\nPrereg-Ledger-Head: {verified.head}" in message
    assert git(second.repository, "status", "--porcelain") == ""


def test_the_same_words_twice_in_a_row_are_one_deviation(second: StudyPaths) -> None:
    """Whoever runs a killed verb again may not know that it had come to its end."""
    first = deviate(second, "Another host.", "fair")
    commit = git(second.repository, "rev-parse", "HEAD")
    assert deviate(second, "Another host. ", "fair") == first
    assert git(second.repository, "rev-parse", "HEAD") == commit
    others = (deviate(second), deviate(second, who="col"), deviate(second))
    assert [entry.seq for entry in others] == [3, 4, 5]


@pytest.mark.parametrize("who", ["ada", "col"])
def test_author_and_collector_may_tell_a_deviation_in_any_state(
    second_collected: StudyPaths, who: str
) -> None:
    deviate(second_collected, who=who)
    assert verify_study(second_collected).state == "collected"
    close(second_collected)
    assert verify_study(second_collected).state == "closed"


@pytest.mark.parametrize("who", ["rex", "eve"])
def test_nobody_else_may(second: StudyPaths, who: str) -> None:
    with pytest.raises(Untrusted):
        deviate(second, who=who)
    with pytest.raises(Untrusted):
        close(second, who="col")
    assert len(ledger(second)) == 1


def test_a_study_that_is_not_audited_ends_only_where_that_is_said(second: StudyPaths) -> None:
    with pytest.raises(WrongState, match="sealed, not audited, and nothing can follow") as caught:
        close(second, unfinished=False)
    assert caught.value.next_step is not None
    assert caught.value.next_step.endswith(f"prereg close {second.root} --reason Done. --unfinished")
    assert len(ledger(second)) == 1
    close(second)


def test_after_the_end_nothing_is_entered(second: StudyPaths) -> None:
    close(second)
    with pytest.raises(WrongState, match="an entry 'deviation' after the study was closed") as caught:
        deviate(second)
    assert caught.value.next_step == f"prereg report {second.root}"
    with pytest.raises(WrongState, match="a second entry 'closed'"):
        close(second)


def test_a_study_of_edition_1_has_no_such_entry(sealed: StudyPaths) -> None:
    with pytest.raises(WrongState, match="edition 1 has no entry deviation"):
        deviate(sealed)
    seal = ledger(sealed)[0].body["seal"]
    enter(sealed, "deviation", {"seal": seal, "about": [], "text": "x"}, "ada")
    fails(sealed, 6, "a study of edition 1 has no deviation")


@pytest.mark.parametrize(
    ("text", "about", "what"),
    [
        ("  \n", (), "is empty"),
        ("x" * 20_001, (), "20000 at most"),
        ("\udcff", (), "is not UTF-8"),
        ("x", ("nobody",), "no configuration or unit 'nobody'"),
        ("x", ("main.fair",), "no configuration or unit"),
    ],
)
def test_what_cannot_be_said_is_refused(
    second: StudyPaths, text: str, about: tuple[str, ...], what: str
) -> None:
    with pytest.raises(UsageError, match=what):
        deviate(second, text, *about)
    assert len(ledger(second)) == 1


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"about": ["nobody"]}, "ada", "no configuration or unit nobody"),
    ({"seal": "0" * 64}, "ada", "not this study's seal digest"),
    ({}, "rex", "has no role author or collector"),
]


@pytest.mark.parametrize(("change", "who", "what"), BAD)
def test_verification_holds_a_deviation_against_plan_and_roles(
    second: StudyPaths, change: dict[str, Any], who: str, what: str
) -> None:
    body = {"seal": ledger(second)[0].body["seal"], "about": [], "text": "x", **change}
    append(second, "deviation", body, f"{who}@example.org")
    with pytest.raises(VerificationFailed):
        verify_study(second)
    if who == "ada":
        sign(second, who)
        fails(second, 6, what)


class Killed(Exception):
    pass


@pytest.mark.parametrize("at", ["head_bytes", "sign_head", "commit"])
def test_a_deviation_that_was_cut_off_is_completed_and_not_told_twice(
    second: StudyPaths, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    def die(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(finish.Repo if at == "commit" else finish, at, die)
        with pytest.raises(Killed):
            deviate(second)
    assert len(ledger(second)) == 2
    with pytest.raises(PreregError):  # nobody else comes between an entry and its signature
        deviate(second, who="col")
    entry = deviate(second)
    assert entry.seq == 2 == len(verify_study(second).entries)


def test_a_deviation_after_a_run_that_ended_does_not_open_it_again(second: StudyPaths) -> None:
    fabricate_records(second, skip=[("main.fair.old", 0)])
    deviate(second)
    with pytest.raises(EvidenceIncomplete, match="1 shards are missing"):
        analyse_study(second, key=signing_key(second), principal="ada@example.org")


def test_nobody_collects_after_a_deviation_that_no_commit_holds(
    second: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(finish.Repo, "commit", die)
        with pytest.raises(Killed):
            deviate(second)
    with pytest.raises(WrongState, match=r"ada@example\.org's and not committed") as caught:
        refuse_unsigned_of_others(verify_study(second), "col@example.org")
    assert caught.value.next_step == f"ada@example.org runs prereg deviate {second.root} once more"


def test_a_collection_goes_on_after_a_deviation(second: StudyPaths) -> None:
    deviate(second)
    fabricate_records(second)
    deviate(second)
    verified = verify_study(second)
    assert (verified.state, verified.signed) == ("collected", len(verified.entries))
    assert value_digest(verified.entries[-1].body) == verified.entries[-1].body_sha256
