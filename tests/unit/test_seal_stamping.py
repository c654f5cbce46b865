"""The time stamp of a study: owed, attached, verified, and never a reason to lose the seal."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from prereg.collect.gates import verify as gate_3
from prereg.draft.lint import check_study
from prereg.errors import EvidenceIncomplete, UsageError, VerificationFailed, WrongState
from prereg.seal import stamping
from prereg.seal.amend import amend_study
from prereg.seal.rotation import revoke_key
from prereg.seal.stamping import Stamped, timestamp_study
from prereg.seal.standing import standing
from prereg.seal.timestamp import BadTimestamp, check_request
from prereg.seal.timestamp_client import new_request
from prereg.seal.verify import verify_report, verify_study
from prereg.store.layout import StudyPaths
from prereg.store.ledger import append, parse_time
from tests.unit.seal_kit import fails, finish, resign_head
from tests.unit.signing_fixture import asked_study
from tests.unit.study_fixture import (
    ENVIRONMENTS,
    SEALED_AT,
    copy_repository,
    fabricate_records,
    git,
    seal,
    signing_key,
)
from tests.unit.test_cli import prereg
from tests.unit.timestamp_fixture import NOW, Authority, serve


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(folder=tmp_path_factory.mktemp("tsa"))


@pytest.fixture(scope="module")
def url(authority: Authority) -> Iterator[str]:
    with serve(authority.stamp) as address:
        yield address


@pytest.fixture(scope="module")
def owed_once(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> StudyPaths:
    paths = asked_study(tmp_path_factory.mktemp("owed"), roots=authority.roots)
    seal(paths)
    return paths


@pytest.fixture(scope="module")
def stamped_once(owed_once: StudyPaths, url: str, tmp_path_factory: pytest.TempPathFactory) -> StudyPaths:
    paths = copy_repository(owed_once, tmp_path_factory.mktemp("stamped") / "x")
    stamp(paths, url)
    return paths


@pytest.fixture
def owed(owed_once: StudyPaths, tmp_path: Path) -> StudyPaths:
    return copy_repository(owed_once, tmp_path / "copy")


@pytest.fixture
def stamped(stamped_once: StudyPaths, tmp_path: Path) -> StudyPaths:
    return copy_repository(stamped_once, tmp_path / "copy")


def stamp(paths: StudyPaths, url: str, who: str = "ada", timeout: float = 20) -> Stamped:
    return timestamp_study(
        paths, url, key=signing_key(paths, who), principal=f"{who}@example.org", timeout=timeout
    )


def clean(paths: StudyPaths) -> bool:
    return git(paths.repository, "status", "--porcelain") == ""


def test_a_seal_that_is_amended_while_its_stamp_is_awaited_has_none(
    owed: StudyPaths, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = stamping.ask

    def slow(*given: Any, **more: Any) -> bytes:
        answer = real(*given, **more)
        notes = owed.root / "NOTES.md"
        notes.write_text(notes.read_text() + "More.\n")
        amend_study(
            owed,
            reason="Notes.",
            key=signing_key(owed),
            principal="ada@example.org",
            environments=ENVIRONMENTS,
        )
        return answer

    monkeypatch.setattr(stamping, "ask", slow)
    with pytest.raises(WrongState, match="sealed anew while its seal was stamped"):
        stamp(owed, url)
    monkeypatch.setattr(stamping, "ask", real)
    assert verify_study(owed).stamp.state == "owed" and clean(owed)
    stamp(owed, url)
    assert verify_study(owed).stamp.state == "verified"


def test_a_stamp_that_is_owed_stands_before_the_collection(owed: StudyPaths, url: str) -> None:
    assert verify_study(owed).stamp.state == "owed"
    with pytest.raises(WrongState, match="asks for a time stamp of the seal, and it is owed") as caught:
        gate_3(owed)
    assert caught.value.next_step is not None and "prereg timestamp" in caught.value.next_step
    done = stamp(owed, url, who="col")
    assert abs(done.time - datetime.now(UTC)) < timedelta(hours=1)
    assert clean(owed)
    found = verify_study(owed).stamp
    assert (found.state, found.time, found.entered) == ("verified", done.time, True)
    gate_3(owed)
    fabricate_records(owed)
    verify_study(owed)


def test_what_was_verified_is_stamped_and_not_what_lies_there_by_then(
    owed: StudyPaths, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, asked = stamping.admit, []
    armored = owed.manifest_signature.read_bytes()

    def admit(*given: object, **named: object) -> object:
        found = real(*given, **named)  # type: ignore[arg-type]
        owed.manifest_signature.write_bytes(b"other bytes")
        return found

    def ask(_url: str, request: bytes, **_named: object) -> bytes:
        asked.append(request)
        raise EvidenceIncomplete("nobody is there")

    monkeypatch.setattr(stamping, "admit", admit)
    monkeypatch.setattr(stamping, "ask", ask)
    with pytest.raises(EvidenceIncomplete, match="nobody is there"):
        stamp(owed, url)
    check_request(asked[0], armored)


def test_a_second_stamp_is_refused(stamped: StudyPaths, url: str) -> None:
    with pytest.raises(WrongState, match="a second entry 'timestamped' of one seal"):
        stamp(stamped, url)
    assert clean(stamped)


def test_a_protocol_that_asks_for_none_wants_none(tmp_path: Path, url: str, authority: Authority) -> None:
    paths = asked_study(tmp_path)
    seal(paths)
    with pytest.raises(WrongState, match="asks for no time stamp"):
        stamp(paths, url)
    assert verify_study(paths).stamp.state == "none"
    request = new_request(paths.manifest_signature.read_bytes())
    paths.timestamp_request.write_bytes(request)
    paths.timestamp_response.write_bytes(authority.token(request))
    fails(paths, 4, "asks for no time stamp")


@pytest.mark.parametrize(
    ("roots", "edition", "what"),
    [(b"no certificate", 2, "holds no certificates"), (None, None, "edition 1 has no timestamp")],
)
def test_a_draft_that_cannot_be_stamped_is_refused(
    tmp_path: Path, authority: Authority, roots: bytes | None, edition: int | None, what: str
) -> None:
    paths = asked_study(tmp_path, roots=authority.roots if roots is None else roots, edition=edition)
    with pytest.raises(UsageError, match=what):
        seal(paths)


def test_check_finds_the_roots_in_the_folder(tmp_path: Path, authority: Authority) -> None:
    paths = asked_study(tmp_path, roots=authority.roots)
    report = check_study(paths, rates={}, harness_sha256="0" * 64)
    assert [f.what for f in report.findings if "certificates" in f.what] == []
    (paths.root / "roots.pem").unlink()
    report = check_study(paths, rates={}, harness_sha256="0" * 64)
    assert [f.what for f in report.findings if "certificates" in f.what] == [
        "the certificates are not sealed: 'roots.pem' is no file in the study's folder"
    ]


def test_a_draft_without_the_roots_is_refused(tmp_path: Path, authority: Authority) -> None:
    paths = asked_study(tmp_path, roots=authority.roots)
    git(paths.repository, "rm", "-q", "studies/coin/roots.pem")
    git(paths.repository, "commit", "-q", "-m", "Gone")
    with pytest.raises(UsageError, match=r"'roots.pem' is no file in the study's folder"):
        seal(paths)


class TestFaults:
    """The seal stands, nothing is kept, and the command that goes on is named."""

    def refused(self, paths: StudyPaths, url: str, kind: type[Exception], what: str) -> None:
        with pytest.raises(kind, match=what) as caught:
            stamp(paths, url, timeout=3)
        assert "prereg timestamp" in str(getattr(caught.value, "next_step", ""))
        assert clean(paths)
        assert verify_study(paths).stamp.state == "owed"

    def test_an_authority_of_another_root(self, owed: StudyPaths, tmp_path: Path) -> None:
        other = Authority(folder=tmp_path / "other")
        with serve(other.stamp) as url:
            self.refused(owed, url, BadTimestamp, "no chain of certificates")

    def test_a_token_of_another_request(self, owed: StudyPaths, authority: Authority) -> None:
        old = authority.stamp(new_request(owed.manifest_signature.read_bytes()))
        with serve(lambda _request: old) as url:
            self.refused(owed, url, BadTimestamp, "another nonce than the request")

    def test_a_rejection(self, owed: StudyPaths, authority: Authority) -> None:
        with serve(lambda request: authority.token(request, status=2, no_token=True)) as url:
            self.refused(owed, url, BadTimestamp, r"was not granted \(rejection: said\)")

    def test_nobody_there(self, owed: StudyPaths) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers here
            self.refused(
                owed, f"http://127.0.0.1:{taken.getsockname()[1]}/", EvidenceIncomplete, "cannot be reached"
            )


class TestTampering:
    def test_a_stamp_that_is_gone(self, stamped: StudyPaths) -> None:
        stamped.timestamp_request.unlink()
        fails(stamped, 4, "missing")
        stamped.timestamp_response.unlink()
        fails(stamped, 6, "is missing; ledger.jsonl:2 has it")

    def test_another_good_stamp(self, stamped: StudyPaths, authority: Authority) -> None:
        request = new_request(stamped.manifest_signature.read_bytes())
        stamped.timestamp_request.write_bytes(request)
        stamped.timestamp_response.write_bytes(authority.token(request))
        fails(stamped, 6, "is not the digest of seal/timestamp.tsq")

    def test_a_stamp_of_other_bytes(self, owed: StudyPaths, authority: Authority) -> None:
        request = new_request(b"other bytes")
        owed.timestamp_request.write_bytes(request)
        owed.timestamp_response.write_bytes(authority.token(request))
        fails(owed, 4, "is for other bytes than those of seal/manifest.json.sig")
        found = standing(owed)
        assert found is not None and found.stamp.state == "attached"

    def test_another_time_in_the_ledger(self, owed: StudyPaths, authority: Authority) -> None:
        from prereg.codec.canonical import digest

        request = new_request(owed.manifest_signature.read_bytes())
        response = authority.token(request)
        owed.timestamp_request.write_bytes(request)
        owed.timestamp_response.write_bytes(response)
        body = {"seal": digest(owed.manifest.read_bytes()), "request_sha256": digest(request)}
        body |= {"token_sha256": digest(response), "time": "2020-01-01T00:00:00+00:00"}
        append(owed, "timestamped", body, "ada@example.org")
        finish(owed, "ada", owed.seal)
        fails(owed, 6, "is not the time of the stamp")

    def test_a_collection_without_it(self, owed: StudyPaths) -> None:
        body = {"seal": verify_study(owed).seal, "attempt": 1, "environments": ENVIRONMENTS, "workers": 1}
        body |= {"network": "not-cut", "network_reason": "a test"}
        append(owed, "collection-started", body, "col@example.org")
        resign_head(owed)
        fails(owed, 4, "a collection began without the time stamp")


@pytest.mark.parametrize("where", ["between the files", "the entry", "the head"])
def test_a_run_that_was_killed_is_finished_by_the_next(
    owed: StudyPaths, url: str, authority: Authority, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prereg.seal import enter as enter_verb

    class Killed(BaseException):
        pass

    def die(*_arguments: object, **_named: object) -> None:
        raise Killed

    if where == "between the files":
        owed.timestamp_request.write_bytes(new_request(owed.manifest_signature.read_bytes()))
    else:
        with monkeypatch.context() as patch, pytest.raises(Killed):
            if where == "the entry":
                patch.setattr(enter_verb.LedgerWriter, "append", die)
            else:
                patch.setattr(enter_verb, "sign_head_and_commit", die)
            stamp(owed, url)
        faults = [step.detail for step in verify_report(owed) if step.status == "failed"]
        unsigned = ["names entry 1 of 2"] if where == "the head" else []  # and nothing else is missed
        assert len(faults) == len(unsigned) and all(w in f for w, f in zip(unsigned, faults, strict=True))
    asked = len(authority.requests)
    done = stamp(owed, url)
    assert len(authority.requests) == asked + (where == "between the files")
    assert done.entry.seq == 2
    assert verify_study(owed).stamp.entered and clean(owed)


class TestTheTimeOfASeal:
    """A key is judged when the stamp says that it signed (section 17)."""

    def test_a_compromised_key_counts_before_its_revocation_by_the_stamp_alone(
        self, owed: StudyPaths, authority: Authority
    ) -> None:
        key = signing_key(owed).fingerprint
        with serve(authority.token) as url:
            stamp(owed, url, who="col")
        revoke_key(owed.repository, key, "compromised", "it was in a log", at=None)
        # Step 4 holds, since the stamp is older; the head that ada signed at sealing has no such stamp.
        fault = fails(owed, 9, "revoked as compromised")
        assert isinstance(fault, VerificationFailed)

    def test_the_stamp_and_not_the_manifest_says_when(self, owed: StudyPaths, authority: Authority) -> None:
        key = signing_key(owed).fingerprint
        with serve(authority.token) as url:
            stamp(owed, url, who="col")
        between = SEALED_AT + timedelta(days=1)
        assert between < NOW
        revoke_key(owed.repository, key, "superseded", "n", at=between)
        fails(owed, 4, "was revoked at")

    def test_without_a_stamp_the_manifest_says_when(self, owed: StudyPaths) -> None:
        revoke_key(
            owed.repository, signing_key(owed).fingerprint, "lost", "n", at=SEALED_AT + timedelta(seconds=1)
        )
        verify_study(owed)
        (owed.repository / "trust" / "revocations.json").unlink()
        revoke_key(owed.repository, signing_key(owed).fingerprint, "lost", "n", at=SEALED_AT)
        fails(owed, 4, r"was revoked at .* \(lost\)")

    def test_a_compromised_key_without_a_stamp_never_counts(self, owed: StudyPaths) -> None:
        revoke_key(owed.repository, signing_key(owed).fingerprint, "compromised", "n")
        fails(owed, 4, "no verified timestamp says that this was signed before")


def test_the_command_line(owed: StudyPaths, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A proxy that the environment names does not stand between this machine and itself.
    monkeypatch.setitem(os.environ, "no_proxy", "127.0.0.1")
    key = str(owed.repository.parent / "keys" / "ada")
    value = json.loads(prereg("status", str(owed.root), "--json").stdout)
    assert value["timestamp"] == {"state": "owed", "time": None}
    assert value["next"] == f"prereg timestamp {owed.root} --key KEY --url URL"
    done = prereg("timestamp", str(owed.root), "--url", "ftp://x", "--key", key)
    assert done.returncode == 2, done.stderr
    done = prereg("timestamp", str(owed.root), "--url", "http://127.0.0.1:9/", "--key", key)
    assert done.returncode == 3 and f"prereg timestamp {owed.root} --url http://127.0.0.1:9/" in done.stderr
    done = prereg("timestamp", str(owed.root), "--url", url, "--key", key, "--json")
    assert done.returncode == 0, done.stderr
    stamped = json.loads(done.stdout)["timestamp"]
    assert stamped["state"] == "verified"
    shown = json.loads(prereg("status", str(owed.root), "--json").stdout)["timestamp"]
    assert parse_time(shown["time"]) == parse_time(stamped["time"])
    steps = json.loads(prereg("verify", str(owed.root), "--json").stdout)["steps"]
    assert f"time stamp verified, {shown['time']}" in steps[3]["detail"]
