"""Each next step is a command that can be typed: the right file, whole, with what the verb asks for."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from prereg.cli.next_step import Given, typed
from prereg.errors import WrongState
from prereg.seal.keys import generate_key
from prereg.seal.push import push_study
from prereg.seal.tell import close_study
from prereg.seal.trust import AUTHOR, LEDGER, Trust, Untrusted, add_signer, check_signer, refuse_uncommitted
from prereg.seal.verify import verify_report
from prereg.store.layout import StudyPaths
from prereg.store.ledger import parse_time
from tests.unit.second_study import make_second
from tests.unit.study_fixture import git, make_study, seal, signing_key
from tests.unit.test_cli import prereg


def next_of(said: str) -> str:
    """The next step of an error on the terminal."""
    return said.partition("  next:  ")[2].splitlines()[0]


@pytest.fixture
def sealed(tmp_path: Path) -> StudyPaths:
    paths = make_study(tmp_path)
    seal(paths)
    return paths


@pytest.mark.parametrize("name", ["trust/foo", "trust", "trust/two words", "-r", "it's"])
def test_an_added_file_is_removed_from_the_study_whatever_it_is_called(name: str, sealed: StudyPaths) -> None:
    """The repository has a folder trust/ as well, and that must never be what is deleted."""
    added = sealed.root / name
    added.parent.mkdir(exist_ok=True)
    added.write_text("x")
    for where, folder in ((sealed.repository, "studies/coin"), (sealed.root, ".")):
        words = shlex.split(next_of(prereg("verify", folder, cwd=where).stderr))
        assert words[0] == "rm" and (where / words[1]).resolve() == added, words


def test_the_repository_s_trust_is_named_by_its_whole_path(sealed: StudyPaths) -> None:
    trust = sealed.repository / "trust"
    sealed.roles.write_text(sealed.roles.read_text() + "\n")
    with pytest.raises(WrongState) as caught:
        refuse_uncommitted(sealed)
    assert caught.value.next_step == f"git add {trust} && git commit -m 'Who may sign'"
    known = Trust(signers=(), roles={}, where=str(sealed.allowed_signers))
    at = parse_time("2026-01-01T00:00:00Z")
    with pytest.raises(Untrusted) as refused:
        check_signer(known, principal="ada", public_key=b"", roles=AUTHOR, namespace=LEDGER, at=at, where="x")
    assert typed(str(refused.value.next_step), Path("studies/coin")).endswith(f"git log -p -- {trust}")


def test_an_empty_folder_is_removed_by_rmdir(sealed: StudyPaths) -> None:
    (sealed.root / "odd" / "inner").mkdir(parents=True)
    for name in ("odd/inner", "odd"):
        step = next_of(prereg("verify", "studies/coin", cwd=sealed.repository).stderr)
        assert step == f"rmdir studies/coin/{name}"
        (sealed.repository / step.removeprefix("rmdir ")).rmdir()
    assert all(step.status != "failed" for step in verify_report(sealed))


ASKED = {
    "prereg deviate DIR": "prereg deviate studies/x --text WHAT --key KEY",
    "prereg deviate DIR --file F": "prereg deviate studies/x --key KEY --file F",
    "prereg amend DIR, if it was cut off": "prereg amend studies/x --reason WHY --key KEY, if it was cut off",
    "prereg close DIR --unfinished": "prereg close studies/x --reason WHY --key KEY --unfinished",
    "prereg relocate DIR": "prereg relocate studies/x --from PLACE --reason WHY --key KEY",
    "prereg timestamp DIR": "prereg timestamp studies/x --url URL --key KEY",
    "prereg draft studies/y": "prereg draft studies/y --template TEMPLATE",
    "prereg key new FILE": "prereg key new FILE --principal NAME --role ROLE",
    "prereg key new FILE --principal a@b --role author": "prereg key new FILE --principal a@b --role author",
    "a: prereg key revoke KEY; b": "a: prereg key revoke KEY --reason REASON --note WHAT; b",
    "prereg key rotate KEY --to FILE": "prereg key rotate KEY --to FILE",
}


@pytest.mark.parametrize("step", ASKED)
def test_a_next_step_has_what_its_verb_asks_for(step: str) -> None:
    whole = typed(step, Path("studies/x"))
    assert whole == ASKED[step]
    assert typed(whole, Path("studies/x")) == whole


def test_a_study_s_path_with_a_space_can_be_typed(tmp_path: Path) -> None:
    folder = tmp_path / "two words"
    for step in ("prereg seal DIR", f"prereg seal {folder}"):
        words = shlex.split(typed(step, folder))
        assert words == ["prereg", "seal", str(folder), "--key", "KEY"]
    assert shlex.split(typed(f"rm {folder}/a", folder)) == ["rm", f"{folder}/a"]


OWN = {
    "prereg seal DIR": "prereg seal studies/x --key '/k/a da'",
    "prereg timestamp DIR --url U --key KEY": "prereg timestamp studies/x --url U --key '/k/a da'",
    "ada runs prereg collect DIR once more": "ada runs prereg collect studies/x --key KEY once more",
    "prereg audit DIR": "prereg audit studies/x --key KEY",
    "prereg cosign DIR": "prereg cosign studies/x --key KEY",
    "prereg collect DIR, as bob": "prereg collect studies/x --key KEY, as bob",
    "prereg key add KEY.pub --principal ada --role author": "prereg key add '/k/a da.pub' --principal ada "
    "--role author",
    "prereg key add KEY.pub --principal NAME --role author": "prereg key add KEY.pub --principal NAME "
    "--role author",
}  # fmt: skip


@pytest.mark.parametrize("step", OWN)
def test_a_key_that_was_given_is_named_again(step: str) -> None:
    assert typed(step, Path("studies/x"), Given(verb="collect", key="/k/a da")) == OWN[step]


def test_the_reviewer_s_key_is_named_for_the_audit_alone() -> None:
    given = Given(verb="audit", key="rev")
    assert typed("prereg audit DIR", Path("x"), given) == "prereg audit x --key rev"
    assert typed("prereg analyse DIR", Path("x"), given) == "prereg analyse x --key KEY"


def test_the_key_of_the_command_line_is_in_what_is_printed(tmp_path: Path) -> None:
    paths = make_study(tmp_path)
    done = prereg("collect", "studies/coin", "--key", "../keys/ada", cwd=paths.repository)
    assert next_of(done.stderr) == f"prereg seal {paths.root} --key ../keys/ada"


def test_who_lacks_a_role_is_told_whose_key_may_before_how_to_get_it(tmp_path: Path) -> None:
    paths = make_study(tmp_path)
    eve = generate_key(tmp_path / "eve")
    add_signer(paths.repository, "eve@example.org", eve.public_line, ["collector"])
    git(paths.repository, "commit", "-q", "-m", "Eve", "--", "trust")
    done = prereg("seal", "studies/coin", "--key", "../eve", cwd=paths.repository)
    assert done.returncode == 2 and "no role author" in done.stderr
    first, second = next_of(done.stderr).split("; or, for that role: ")
    assert first == "the same with --key KEY of ada@example.org"
    assert second == "prereg key add ../eve.pub --principal eve@example.org --role author"


def test_a_closed_study_is_sent_by_git_while_its_end_is_here_alone(tmp_path: Path) -> None:
    paths = make_second(tmp_path)
    seal(paths)
    bare = tmp_path / "bare"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(bare))
    git(paths.repository, "remote", "add", "origin", str(bare))
    key = signing_key(paths)
    push_study(paths, "origin", key=key, principal="ada@example.org")
    close_study(paths, "Enough.", unfinished=True, key=key, principal="ada@example.org")
    for step in ("git push --follow-tags origin HEAD", f"prereg report {paths.root}"):
        done = prereg("push", "studies/coin", "--key", "../keys/ada", cwd=paths.repository)
        assert done.returncode == 4 and next_of(done.stderr) == step
        git(paths.repository, *shlex.split("push -q --follow-tags origin HEAD"))
    assert git(bare, "rev-parse", "main") == git(paths.repository, "rev-parse", "HEAD")


def test_a_key_of_nobody_s_is_told_how_it_is_entered_whole(tmp_path: Path) -> None:
    paths = make_study(tmp_path)
    seal(paths)
    generate_key(tmp_path / "eve")
    done = prereg("collect", "studies/coin", "--key", "../eve", cwd=paths.repository)
    assert next_of(done.stderr) == "prereg key list; or prereg key new FILE --principal NAME --role ROLE"


def test_a_revocation_to_come_is_a_rotation_that_can_be_typed(tmp_path: Path) -> None:
    paths = make_study(tmp_path)
    key = signing_key(paths).fingerprint
    given = [key, "--reason", "lost", "--note", "x", "--at", "2999-01-01"]
    done = prereg("key", "revoke", *given, cwd=paths.repository)
    assert next_of(done.stderr) == f"prereg key rotate {key} --to FILE"
