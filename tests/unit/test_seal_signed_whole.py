"""From the seal to the amendment with every kind of key, and what OpenSSH and sha256sum say of it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from prereg.cli import ready
from prereg.errors import VerificationFailed, WrongState
from prereg.seal import sshsig
from prereg.seal.amend import amend_study
from prereg.seal.build import seal_study
from prereg.seal.cosign import cosign_study
from prereg.seal.keys import load_key
from prereg.seal.rotation import revoke_key
from prereg.seal.stamping import timestamp_study
from prereg.seal.trust import Untrusted, add_signer, load_trust, refuse_uncommitted
from prereg.seal.verify import verify_study
from prereg.store.layout import StudyPaths
from tests.unit.seal_kit import fails
from tests.unit.signing_fixture import asked_study, cosign, write_protocol
from tests.unit.study_fixture import ENVIRONMENTS, copy_repository, git, make_study, seal, signing_key
from tests.unit.test_seal_keys import KINDS, add_to, make_key, ssh_agent
from tests.unit.test_seal_sshsig import needs_openssh
from tests.unit.timestamp_fixture import Authority, serve

__all__ = ["ssh_agent"]
BOB = "bob@example.org"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(folder=tmp_path_factory.mktemp("tsa"))


@pytest.fixture(scope="module")
def url(authority: Authority) -> Iterator[str]:
    with serve(authority.stamp) as address:
        yield address


def openssh_accepts(paths: StudyPaths, principal: str, signed: Path, signature: Path, namespace: str) -> None:
    command = ["ssh-keygen", "-Y", "verify", "-f", str(paths.allowed_signers), "-I", principal]
    with signed.open("rb") as stdin:
        subprocess.run([*command, "-n", namespace, "-s", str(signature)], stdin=stdin, check=True)


@needs_openssh
@pytest.mark.parametrize("kind", [*KINDS, "agent"])
def test_a_study_sealed_with_any_key_is_checked_without_this_program(
    kind: str, tmp_path: Path, ssh_agent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = make_study(tmp_path)
    file = make_key(tmp_path / "key", "ecdsa 256" if kind == "agent" else kind)
    key = load_key(file)
    if kind == "agent":
        add_to(ssh_agent, file)
        file.unlink()
        monkeypatch.setenv("SSH_AUTH_SOCK", str(ssh_agent))
        key = load_key(f"agent:{key.fingerprint}")
    add_signer(paths.repository, BOB, key.public_line, ["author"])
    git(paths.repository, "commit", "-q", "-am", "Bob")
    seal_study(paths, key=key, principal=BOB, environments=ENVIRONMENTS)
    assert verify_study(paths).manifest.author.key == key.fingerprint
    openssh_accepts(paths, BOB, paths.manifest, paths.manifest_signature, "prereg-seal")
    openssh_accepts(paths, BOB, paths.head, paths.head_signature, "prereg-ledger")
    subprocess.run(["sha256sum", "--quiet", "-c", "seal/SHA256SUMS"], cwd=paths.root, check=True)


@pytest.fixture(scope="module")
def amended_once(authority: Authority, url: str, tmp_path_factory: pytest.TempPathFactory) -> StudyPaths:
    """Sealed, signed by another, stamped; then amended, signed by yet another, and not yet stamped."""
    paths = asked_study(
        tmp_path_factory.mktemp("amended"), signers=(2, "ada", "bob", "cyd"), roots=authority.roots
    )
    seal(paths, now=datetime.now(UTC))
    cosign(paths, "bob")
    timestamp_study(paths, url, key=signing_key(paths), principal="ada@example.org")
    write_protocol(paths, {"title": "Another coin"})
    amend_study(
        paths,
        reason="A better title",
        key=signing_key(paths),
        principal="ada@example.org",
        environments=ENVIRONMENTS,
    )
    cosign(paths, "cyd")
    return paths


@pytest.fixture
def amended(amended_once: StudyPaths, tmp_path: Path) -> StudyPaths:
    return copy_repository(amended_once, tmp_path / "copy")


def test_an_amendment_is_signed_and_stamped_anew(amended: StudyPaths, url: str) -> None:
    found = verify_study(amended)
    assert found.signatures is not None and found.signatures.signed == ("ada@example.org", "cyd@example.org")
    assert found.stamp.state == "owed"
    timestamp_study(amended, url, key=signing_key(amended), principal="ada@example.org")
    assert verify_study(amended).stamp.state == "verified"
    kept = amended.lineage / str(found.manifest.amends)
    assert sorted(p.name for p in kept.iterdir()) == [
        "SHA256SUMS",
        "cosign",
        "manifest.json",
        "manifest.json.sig",
        "timestamp.tsq",
        "timestamp.tsr",
    ]


def test_what_an_amended_seal_had_is_held_against_the_ledger(
    amended: StudyPaths, authority: Authority
) -> None:
    kept = amended.lineage / str(verify_study(amended).manifest.amends)
    cosignature = kept / "cosign" / f"{BOB}.sig"
    armored = cosignature.read_bytes()
    (kept / "timestamp.tsr").write_bytes(authority.token((kept / "timestamp.tsq").read_bytes()))
    fails(amended, 6, "is not the digest of seal/lineage/.*/timestamp.tsr")
    (kept / "timestamp.tsr").write_bytes(b"x")
    fails(amended, 4, "is no time stamp")
    (kept / "timestamp.tsr").unlink()
    fails(amended, 6, "is missing; ledger.jsonl:3 has it")
    git(amended.repository, "checkout", "-q", "--", "studies")
    cosignature.write_bytes(signing_key(amended, "bob").sign(b"other", namespace="prereg-seal"))
    fails(amended, 4, "does not match the signed bytes")
    cosignature.unlink()
    fails(amended, 6, "its signature is missing; ledger.jsonl:2 has it")
    cosignature.with_name("cyd@example.org.sig").write_bytes(armored)
    fails(amended, 4, "has no ledger entry")


def test_the_stamp_of_an_amended_seal_says_when_it_was_signed(amended: StudyPaths) -> None:
    """Step 4 takes the word of a stamp whose roots are sealed still; the heads have no such word."""
    revoke_key(amended.repository, signing_key(amended, "ada").fingerprint, "compromised", "n")
    fault = fails(amended, 4, "no verified timestamp says")
    assert fault.where == "seal/manifest.json.sig"


class TestSealWithATimestamp:
    """`prereg seal --timestamp URL`, after what every seal needs first."""

    def run(
        self, paths: StudyPaths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], url: str
    ) -> dict[str, Any]:
        from prereg.cli.seal import seal as verb
        from prereg.cli.signing import Actor

        who = Actor(key=signing_key(paths), principal="ada@example.org")
        made = ready.Ready(who=who, environments=ENVIRONMENTS, images=None, edition=2)
        monkeypatch.setattr(ready, "prepare", lambda *_a, **_n: made)
        try:
            verb(paths.root, key="k", timestamp=url, as_json=True)
        finally:
            out = capsys.readouterr().out
        value: dict[str, Any] = json.loads(out)
        return value

    def test_the_stamp_comes_with_the_seal(
        self,
        tmp_path: Path,
        authority: Authority,
        url: str,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        paths = asked_study(tmp_path, roots=authority.roots)
        value = self.run(paths, monkeypatch, capsys, url)
        assert value["timestamp"]["state"] == "verified" and value["timestamp"]["error"] is None
        assert verify_study(paths).stamp.entered

    def test_without_one_the_seal_stands_and_the_stamp_is_owed(
        self,
        tmp_path: Path,
        authority: Authority,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        from prereg.errors import EvidenceIncomplete

        paths = asked_study(tmp_path, roots=authority.roots)
        with serve(lambda _request: b"", status=503) as url, pytest.raises(EvidenceIncomplete) as caught:
            self.run(paths, monkeypatch, capsys, url)
        assert caught.value.exit_code == 3
        assert caught.value.next_step == f"prereg timestamp {paths.root} --url {url} --key KEY"
        assert verify_study(paths).stamp.state == "owed"

    def test_a_stamp_that_nobody_asked_for_is_refused_before_the_seal(
        self, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        from prereg.errors import UsageError

        paths = asked_study(tmp_path)
        with pytest.raises(UsageError, match="asks for no time stamp"):
            self.run(paths, monkeypatch, capsys, url)
        assert not paths.ledger.exists()


def test_revocations_are_committed_with_the_seal_and_before_an_audit(tmp_path: Path) -> None:
    paths = make_study(tmp_path)
    revoke_key(paths.repository, signing_key(paths, "rex").fingerprint, "lost", "n")
    with pytest.raises(WrongState, match="not committed"):
        refuse_uncommitted(paths)
    seal(paths)
    refuse_uncommitted(paths)
    assert list(load_trust(paths).revocations) == [signing_key(paths, "rex").fingerprint]


def test_a_cosigner_of_another_kind_of_key(tmp_path: Path) -> None:
    paths = asked_study(tmp_path, signers=(2, "ada", "bob"))
    key = load_key(make_key(tmp_path / "key", "rsa"))
    add_signer(paths.repository, BOB, key.public_line, ["author"])
    git(paths.repository, "commit", "-q", "-am", "Bob's other key")
    seal(paths)
    assert cosign_study(paths, key=key, principal=BOB).signatures.complete
    openssh_accepts(paths, BOB, paths.manifest, paths.cosignature(BOB), "prereg-seal")
    found = sshsig.parse(paths.cosignature(BOB).read_bytes(), where="x")
    assert found.algorithm == b"rsa-sha2-512"
    shutil.rmtree(paths.cosign)
    with pytest.raises(VerificationFailed, match="its signature is missing"):
        verify_study(paths)


@pytest.mark.parametrize("change", ["removed", "other"])
def test_revocations_that_head_has_are_missed_where_they_are_not(tmp_path: Path, change: str) -> None:
    paths = make_study(tmp_path)
    seal(paths)
    revoke_key(paths.repository, signing_key(paths, "ada").fingerprint, "compromised", "n")
    file = paths.repository / "trust" / "revocations.json"
    fails(paths, 4, "revoked as compromised")
    git(paths.repository, "add", "trust")
    git(paths.repository, "commit", "-q", "-m", "Revoke")
    file.unlink()
    what = "is missing"
    if change == "other":
        revoke_key(paths.repository, signing_key(paths, "rex").fingerprint, "lost", "n")
        what = "is not as it was committed"
    assert fails(paths, 4, what).where == str(file)
    with pytest.raises(Untrusted, match=what):  # nobody signs either
        seal(make_study(tmp_path, study="second", first_seed=9_000))
    # Neither a repository around the study nor an object that cannot be read hides them.
    blob = git(paths.repository, "rev-parse", "HEAD:trust/revocations.json").strip()
    (paths.repository / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    git(paths.root, "init", "-q")
    with pytest.raises(Untrusted, match=what):
        load_trust(paths)


def test_without_history_nobody_is_asked_for_revocations(tmp_path: Path) -> None:
    paths = make_study(tmp_path)
    shutil.rmtree(paths.repository / ".git")
    assert load_trust(paths).revocations == {}
