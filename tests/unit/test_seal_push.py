"""Pushing to a real bare repository: what arrives is read back, and a failure leaves the seal as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from prereg.errors import PreregError, VerificationFailed, WrongState
from prereg.seal import push as pushing
from prereg.seal.push import Pushed, push_study, refuse_remote
from prereg.seal.tell import close_study, deviate_study
from prereg.seal.trust import Untrusted
from prereg.seal.verify import verify_study
from prereg.store.layout import StudyPaths
from prereg.store.ledger import read_ledger
from prereg.store.remote import find_remote, public_url
from prereg.store.repo import Repo
from tests.unit.second_study import second, second_collected, second_collected_once, second_once
from tests.unit.study_fixture import copy_repository, git, signing_key

__all__ = ["second", "second_collected", "second_collected_once", "second_once"]


@pytest.fixture
def bare(second: StudyPaths, tmp_path: Path) -> Path:
    """A bare repository that the study's repository knows as `origin`."""
    place = tmp_path / "bare.git"
    place.mkdir()
    git(place, "init", "-q", "--bare", "-b", "main")
    git(second.repository, "remote", "add", "origin", str(place))
    return place


def push(paths: StudyPaths, remote: str = "origin", who: str = "ada") -> Pushed:
    return push_study(paths, remote, key=signing_key(paths, who), principal=f"{who}@example.org")


def head(folder: Path, ref: str = "refs/heads/main") -> str:
    return git(folder, "rev-parse", ref).strip()


def count(paths: StudyPaths) -> int:
    return len(read_ledger(paths.ledger.read_bytes()))


def test_what_arrived_is_entered_and_the_entry_arrives_too(second: StudyPaths, bare: Path) -> None:
    sealed = head(second.repository)
    done = push(second)
    verified = verify_study(second)
    assert (verified.state, verified.entries[-1]) == ("sealed", done.entry)
    assert done.entry.body == {
        "seal": verified.seal,
        "remote": str(bare),
        "ref": "refs/heads/main",
        "commit": sealed,
    }
    assert head(bare) == head(second.repository) == done.commit != sealed
    assert head(bare, "refs/tags/prereg/coin/sealed") == head(
        second.repository, "refs/tags/prereg/coin/sealed"
    )
    assert done.tags == ("prereg/coin/sealed",)


def test_a_clone_of_what_was_pushed_verifies(second: StudyPaths, bare: Path, tmp_path: Path) -> None:
    push(second, who="col")
    git(tmp_path, "clone", "-q", str(bare), "clone")
    assert verify_study(StudyPaths(root=tmp_path / "clone" / "studies" / "coin")).entries[-1].type == "pushed"


def test_pushing_again_enters_nothing_until_something_happened(second: StudyPaths, bare: Path) -> None:
    push(second)
    (second.repository / "README").write_text("x")
    git(second.repository, "add", "README")
    git(second.repository, "commit", "-q", "-m", "More")
    assert push(second).commit == head(bare) == head(second.repository)
    assert count(second) == 2
    deviate_study(second, "x", key=signing_key(second), principal="ada@example.org")
    push(second)
    assert [e.type for e in verify_study(second).entries] == ["sealed", "pushed", "deviation", "pushed"]


def test_an_address_may_be_given_and_is_told_without_its_password(second: StudyPaths, bare: Path) -> None:
    done = push(second, f"file://ada:secret@localhost{bare}")
    assert done.remote == f"file://localhost{bare}"
    assert b"secret" not in second.ledger.read_bytes()


@pytest.mark.parametrize(
    ("url", "public"),
    [
        ("https://ada:pa@ss@host.example:8443/r.git", "https://host.example:8443/r.git"),
        ("https://token@host.example/a@b/r.git", "https://host.example/a@b/r.git"),
        ("ssh://git@host.example/r.git", "ssh://host.example/r.git"),
        ("git@host.example:ada/r.git", "host.example:ada/r.git"),
        ("/srv/git/a@b:c.git", "/srv/git/a@b:c.git"),
        ("host.example:r@1.git", "host.example:r@1.git"),
        ("https://host.example", "https://host.example"),
        ("https://host.example?x@y", "https://host.example?x@y"),
        ("https://host.example#x@y", "https://host.example#x@y"),
        ("://a@b/c", "://a@b/c"),
        ("a@b@host.example:c", "host.example:c"),
        ("host:22@z:c", "host:22@z:c"),
    ],
)
def test_user_and_password_are_no_part_of_an_address(url: str, public: str) -> None:
    assert public_url(url) == public


@pytest.mark.parametrize("name", ["upstream", "", "--exec=x", "nowhere/at/all"])
def test_a_remote_that_is_not_there_is_refused_at_once(second: StudyPaths, name: str) -> None:
    with pytest.raises(WrongState, match="there is no remote"):
        refuse_remote(second, name)
    with pytest.raises(WrongState, match="there is no remote"):
        push(second, name)
    assert count(second) == 1


def test_on_no_branch_nothing_is_pushed(second: StudyPaths, bare: Path) -> None:
    git(second.repository, "checkout", "-q", "--detach")
    with pytest.raises(WrongState, match="HEAD is on no branch"):
        push(second)


def test_what_is_no_fast_forward_is_refused_and_the_seal_stays(
    second: StudyPaths, bare: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", "-b", "main", str(other))
    git(other, "commit", "-q", "--allow-empty", "-m", "Other")
    git(other, "push", "-q", str(bare), "main")
    theirs = head(bare)
    with pytest.raises(WrongState, match="no fast-forward") as caught:
        push(second)
    assert caught.value.next_step == (
        f"git pull --no-rebase origin main, then prereg push {second.root} --remote origin"
    )
    assert (head(bare), count(second), verify_study(second).state) == (theirs, 1, "sealed")


def test_another_tag_of_that_name_is_refused(second: StudyPaths, bare: Path) -> None:
    git(second.repository, "push", "-q", "origin", "HEAD~1:refs/tags/prereg/coin/sealed")
    with pytest.raises(WrongState, match="another tag of that name"):
        push(second)
    assert count(second) == 1


def test_a_remote_that_cannot_be_reached_is_named_without_its_password(
    second: StudyPaths, tmp_path: Path
) -> None:
    with pytest.raises(WrongState, match="git refuses") as caught:
        push(second, f"file://ada:secret@localhost{tmp_path}/gone.git")
    assert "secret" not in str(caught.value.as_json())
    assert count(second) == 1


@pytest.mark.parametrize("url", ["ext::sh -c touch% {}", "fd::17"])
def test_an_address_that_names_a_program_is_not_run(second: StudyPaths, tmp_path: Path, url: str) -> None:
    made = tmp_path / "made"
    git(second.repository, "remote", "add", "odd", url.format(made))
    git(second.repository, "config", "protocol.ext.allow", "always")
    with pytest.raises(WrongState):
        push(second, "odd")
    assert not made.exists()


def test_what_is_read_back_must_be_what_was_pushed(second: StudyPaths, bare: Path) -> None:
    (bare / "hooks" / "post-receive").write_text(
        "#!/bin/sh\ngit update-ref refs/heads/main $(\n"
        "git commit-tree -m x $(git rev-parse refs/heads/main^{tree}))\n"
    )
    (bare / "hooks" / "post-receive").chmod(0o755)
    git(bare, "config", "user.name", "x")
    git(bare, "config", "user.email", "x")
    with pytest.raises(VerificationFailed, match="says that refs/heads/main is") as caught:
        push(second)
    assert caught.value.where == str(bare)
    assert "prereg push" in (caught.value.next_step or "")
    assert (count(second), verify_study(second).state) == (1, "sealed")


def test_an_entry_that_did_not_arrive_is_pushed_by_the_next_run(
    second: StudyPaths, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []
    real = pushing.push

    def once(*args: Any) -> None:
        calls.append(args)
        if len(calls) == 2:
            raise WrongState("the line is cut")
        real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(pushing, "push", once)
        with pytest.raises(WrongState, match="cut"):
            push(second)
    assert (count(second), verify_study(second).entries[-1].type) == (2, "pushed")
    assert push(second).commit == head(bare) == head(second.repository)
    assert count(second) == 2


def test_strangers_edition_1_and_closed_studies_are_refused(
    second: StudyPaths, bare: Path, sealed_once: StudyPaths, tmp_path: Path
) -> None:
    first = copy_repository(sealed_once, tmp_path / "first")
    with pytest.raises(Untrusted):
        push(second, who="rex")
    with pytest.raises(WrongState, match="edition 1 has no entry pushed"):
        push(first, str(bare))
    close_study(second, "x", unfinished=True, key=signing_key(second), principal="ada@example.org")
    with pytest.raises(PreregError, match="after the study was closed"):
        push(second)
    assert git(bare, "for-each-ref") == ""


def test_only_the_first_address_for_pushes_counts(second: StudyPaths, bare: Path) -> None:
    git(second.repository, "remote", "set-url", "--push", "origin", "https://u:p@host.example/x.git")
    assert find_remote(Repo.find(second.root), "origin").public == "https://host.example/x.git"


@pytest.mark.parametrize("kind", ["insteadOf", "pushInsteadOf"])
@pytest.mark.parametrize("name", ["hub:coin.git", "origin"])
def test_what_settings_make_of_an_address_is_pushed_to_and_entered(
    second: StudyPaths, bare: Path, kind: str, name: str
) -> None:
    git(second.repository, "remote", "set-url", "origin", "hub:coin.git")
    git(second.repository, "config", "url./nowhere/.insteadOf", "hub:")
    git(second.repository, "config", f"url.file://ada:secret@localhost{bare}.{kind}", "hub:coin.git")
    done = push(second, name)
    assert done.remote == done.entry.body["remote"] == f"file://localhost{bare}"
    assert head(bare) == done.commit
    assert push(second, name).entry == done.entry


@pytest.mark.parametrize("kind", ["insteadOf", "pushInsteadOf"])
def test_settings_that_lead_on_from_the_address_are_refused(
    second: StudyPaths, bare: Path, kind: str
) -> None:
    git(second.repository, "remote", "set-url", "origin", "hub:coin.git")
    git(second.repository, "config", "url.hop:.insteadOf", "hub:")
    git(second.repository, "config", f"url.file://ada:secret@localhost{bare.parent}/.{kind}", "hop:")
    for name in ("origin", "hub:coin.git"):
        with pytest.raises(WrongState, match="lead on from there") as caught:
            push(second, name)
        assert "secret" not in str(caught.value.as_json())
    assert (count(second), git(bare, "for-each-ref")) == (1, "")


def test_an_address_that_is_also_the_name_of_another_remote_is_refused(
    second: StudyPaths, bare: Path, tmp_path: Path
) -> None:
    git(second.repository, "remote", "set-url", "origin", f"file://{bare}")
    git(second.repository, "config", f"remote.file://{bare}.url", str(tmp_path / "elsewhere"))
    with pytest.raises(WrongState, match="lead on from there"):
        push(second)
