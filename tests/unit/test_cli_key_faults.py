"""Changes of trust/ at the same time, with impossible times, and with text that nobody could read back."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import pytest

from prereg.errors import WrongState
from prereg.seal import rotation
from prereg.seal.keys import SigningKey, generate_key
from prereg.seal.revocation import parse_revocations
from prereg.seal.rotation import read_repository, revoke_key
from prereg.seal.trust import add_signer
from prereg.seal.verify import verify_report
from prereg.store.lock import trust_lock
from tests.unit.study_fixture import git, seal
from tests.unit.test_cli import PREREG, prereg
from tests.unit.third_fixture import collect_third, make_third_study

MANY = 6


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "r"
    folder.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


def keys_in(folder: Path, n: int) -> list[SigningKey]:
    return [generate_key(folder / f"k{i}") for i in range(n)]


def at_once(commands: list[list[str]]) -> list[int]:
    running = [subprocess.Popen([PREREG, *c], stderr=subprocess.DEVNULL) for c in commands]
    return [one.wait() for one in running]


def test_keys_added_and_revoked_at_once_are_all_there(repository: Path, tmp_path: Path) -> None:
    keys = keys_in(tmp_path, MANY)
    where = ["--repository", str(repository)]
    adding = [
        ["key", "add", str(tmp_path / f"k{i}.pub"), "--principal", f"p{i}", "--role", "author", *where]
        for i in range(MANY)
    ]
    assert at_once(adding) == [0] * MANY
    trust = read_repository(repository)
    assert {s.public_key for s in trust.signers} == {k.public_key for k in keys}
    assert set(trust.roles) == {f"p{i}" for i in range(MANY)}
    revoking = [
        ["key", "revoke", key.fingerprint, "--reason", "lost", "--note", "Gone.", *where] for key in keys[1:]
    ]
    rotating = [["key", "rotate", keys[0].fingerprint, "--to", str(tmp_path / "next"), *where]]
    assert at_once(revoking + rotating) == [0] * MANY
    trust = read_repository(repository)
    assert set(trust.revocations) == {key.fingerprint for key in keys[1:]}
    assert len(trust.signers) == MANY + 1


def test_whoever_waits_too_long_for_trust_is_told(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (key,) = keys_in(tmp_path, 1)
    add_signer(repository, "ada", key.public_line, ["author"])
    inside, done = threading.Event(), threading.Event()

    def hold() -> None:
        with trust_lock(repository):
            inside.set()
            done.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    assert inside.wait(10)
    monkeypatch.setattr(rotation, "trust_lock", lambda place: trust_lock(place, wait=0.1))
    with pytest.raises(WrongState, match="who may sign") as refused:
        revoke_key(repository, key.fingerprint, "lost", "Gone.")
    done.set()
    holder.join()
    assert refused.value.exit_code == 4 and refused.value.next_step
    assert not (repository / "trust" / "revocations.json").exists()


def test_what_the_reader_of_revocations_refuses_is_not_written(repository: Path, tmp_path: Path) -> None:
    one, two = keys_in(tmp_path, 2)
    for name, key in (("a", one), ("b", two)):
        add_signer(repository, name, key.public_line, ["author"])
    revoke_key(repository, one.fingerprint, "lost", "Gone.")
    file = repository / "trust" / "revocations.json"
    before = file.read_bytes()
    with pytest.raises(Exception, match="NFC"):
        revoke_key(repository, two.fingerprint, "lost", "e\u0301")
    assert file.read_bytes() == before
    assert set(parse_revocations(before, where="x")) == {one.fingerprint}


TIMES = ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "0001-01-01", "00010101", "2026-13-01"]


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("option", ["--valid-after", "--valid-before", "--at"])
def test_a_time_that_is_none_is_wrong_use(option: str, time: str, repository: Path, tmp_path: Path) -> None:
    (key,) = keys_in(tmp_path, 1)
    add_signer(repository, "ada", key.public_line, ["author"])
    before = (repository / "trust" / "allowed_signers").read_bytes()
    public = str(tmp_path / "k0.pub")
    given = ["revoke", public, "--reason", "lost", "--note", "Gone."]
    if option != "--at":
        given = ["add", public, "--principal", "ada", "--role", "author"]
    done = prereg("key", *given, option, time, "--repository", str(repository))
    assert done.returncode == 2, done.stderr
    assert option in done.stderr and "Traceback" not in done.stderr
    assert (repository / "trust" / "allowed_signers").read_bytes() == before
    assert not (repository / "trust" / "revocations.json").exists()


@pytest.mark.parametrize("verb", ["collect", "analyse", "deviate", "close"])
def test_nobody_signs_by_what_no_clone_has(verb: str, tmp_path: Path) -> None:
    """A key that was rotated and not committed: what it signs verifies here, and fails in every clone."""
    paths = make_third_study(tmp_path)
    seal(paths)
    if verb == "analyse":
        collect_third(paths)
    who = "col" if verb == "collect" else "ada"
    new = tmp_path / "next"
    rotate = ["key", "rotate", str(tmp_path / "keys" / f"{who}.pub"), "--to", str(new)]
    assert prereg(*rotate, "--repository", str(paths.repository)).returncode == 0
    more = {"deviate": ["--text", "It rained."], "close": ["--reason", "Over.", "--unfinished"]}
    before = paths.ledger.read_bytes()
    done = prereg(verb, str(paths.root), "--key", str(new), *more.get(verb, []))
    assert done.returncode == 4 and "-m 'Who may sign'" in done.stderr, done.stderr
    assert paths.ledger.read_bytes() == before
    assert "allowed_signers of trust/ otherwise" in verify_report(paths)[8].detail
    git(paths.repository, "commit", "-q", "-m", "A new key", "--", "trust")
    assert "otherwise" not in verify_report(paths)[8].detail
