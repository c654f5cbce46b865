"""Several signatures of one seal: who is needed, who is missing, and what no signature may be."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from prereg.codec.canonical import digest
from prereg.collect.gates import verify as gate_3
from prereg.errors import UsageError, VerificationFailed, WrongState
from prereg.seal import cosign as cosign_verb
from prereg.seal import sshsig
from prereg.seal.keys import load_key
from prereg.seal.standing import standing
from prereg.seal.trust import Untrusted, add_signer
from prereg.seal.verify import verify_study
from prereg.store.layout import StudyPaths
from prereg.store.ledger import append
from tests.unit.seal_kit import fails, finish, resign_head
from tests.unit.signing_fixture import asked_study, cosign
from tests.unit.study_fixture import copy_repository, fabricate_records, git, seal, signing_key
from tests.unit.test_cli import prereg
from tests.unit.test_seal_keys import make_key


@pytest.fixture(scope="module")
def half_once(tmp_path_factory: pytest.TempPathFactory) -> StudyPaths:
    """Sealed by ada, who needs one of bob and cyd."""
    paths = asked_study(tmp_path_factory.mktemp("half"), signers=(2, "ada", "bob", "cyd"))
    seal(paths)
    return paths


@pytest.fixture(scope="module")
def whole_once(half_once: StudyPaths, tmp_path_factory: pytest.TempPathFactory) -> StudyPaths:
    paths = copy_repository(half_once, tmp_path_factory.mktemp("whole") / "x")
    cosign(paths, "bob")
    return paths


@pytest.fixture
def half(half_once: StudyPaths, tmp_path: Path) -> StudyPaths:
    return copy_repository(half_once, tmp_path / "copy")


@pytest.fixture
def whole(whole_once: StudyPaths, tmp_path: Path) -> StudyPaths:
    return copy_repository(whole_once, tmp_path / "copy")


def test_a_seal_is_complete_once_enough_have_signed(half: StudyPaths) -> None:
    found = verify_study(half).signatures
    assert found is not None and str(found) == "1 of 2 signatures" and not found.complete
    assert found.missing == ("bob@example.org", "cyd@example.org")
    with pytest.raises(WrongState, match="the seal has 1 of 2 signatures; missing: bob@example") as caught:
        gate_3(half)
    assert caught.value.next_step is not None and "prereg cosign" in caught.value.next_step
    done = cosign(half, "bob")
    assert done.signatures.complete and done.signatures.missing == ("cyd@example.org",)
    assert git(half.repository, "status", "--porcelain") == ""
    gate_3(half)
    fabricate_records(half)
    assert verify_study(half).signatures == done.signatures


def test_openssh_accepts_the_other_signature_and_sha256sum_the_seal(whole: StudyPaths) -> None:
    allowed = str(whole.allowed_signers)
    for who, sig in (("ada", whole.manifest_signature), ("bob", whole.cosignature("bob@example.org"))):
        command = ["ssh-keygen", "-Y", "verify", "-f", allowed, "-I", f"{who}@example.org", "-n"]
        with whole.manifest.open("rb") as manifest:
            subprocess.run([*command, "prereg-seal", "-s", str(sig)], stdin=manifest, check=True)
    subprocess.run(["sha256sum", "--quiet", "-c", "seal/SHA256SUMS"], cwd=whole.root, check=True)


def test_more_than_is_needed_may_sign(whole: StudyPaths) -> None:
    assert str(cosign(whole, "cyd").signatures) == "3 of 2 signatures"


def test_the_command_line_and_the_status(half: StudyPaths, tmp_path: Path) -> None:
    keys = half.repository.parent / "keys"
    value = json.loads(prereg("status", str(half.root), "--json").stdout)
    assert value["signatures"] == {
        "need": 2,
        "signed": ["ada@example.org"],
        "missing": ["bob@example.org", "cyd@example.org"],
        "complete": False,
    }
    assert value["next"] == f"prereg cosign {half.root} --key KEY"
    done = prereg("collect", str(half.root), "--key", str(keys / "col"))
    assert done.returncode == 4 and "prereg cosign" in done.stderr
    done = prereg("cosign", str(half.root), "--key", str(keys / "cyd"), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["signatures"]["complete"] is True
    shown = prereg("status", str(half.root)).stderr
    assert "2 of 2 signatures" in shown
    steps = json.loads(prereg("verify", str(half.root), "--json").stdout)["steps"]
    assert steps[3]["detail"].endswith("; 2 of 2 signatures") and steps[3]["applied"] == 2


def refused(paths: StudyPaths, who: str, what: str, kind: type[Exception]) -> None:
    before = git(paths.repository, "rev-parse", "HEAD")
    with pytest.raises(kind, match=what):
        cosign(paths, who)
    assert git(paths.repository, "rev-parse", "HEAD") == before
    assert git(paths.repository, "status", "--porcelain") == ""


def test_who_may_not_sign(whole: StudyPaths) -> None:
    refused(whole, "ada", "sealed the study; that is the signature", UsageError)
    refused(whole, "bob", "a second entry 'cosigned' of one seal by bob", WrongState)
    refused(whole, "rex", "has no role author", Untrusted)
    fabricate_records(whole)
    refused(whole, "cyd", "an entry 'cosigned' after", WrongState)


def test_an_author_who_is_not_in_the_list_may_not_sign(tmp_path: Path) -> None:
    paths = asked_study(tmp_path, signers=(1, "ada", "bob"))
    seal(paths)
    assert verify_study(paths).signatures is not None
    refused(paths, "cyd", "none of the protocol's signers", UsageError)
    with pytest.raises(Untrusted, match="is not bob"):
        cosign_verb.cosign_study(paths, key=signing_key(paths, "ada"), principal="bob@example.org")


def test_a_protocol_without_signers_wants_none(tmp_path: Path) -> None:
    paths = asked_study(tmp_path)
    seal(paths)
    refused(paths, "bob", "names no signers", WrongState)
    assert verify_study(paths).signatures is None
    paths.cosign.mkdir()
    paths.cosignature("bob@example.org").write_bytes(paths.manifest_signature.read_bytes())
    fails(paths, 4, "names no signers")


def test_an_author_who_seals_outside_the_list_does_not_count(tmp_path: Path) -> None:
    paths = asked_study(tmp_path, signers=(1, "bob", "cyd"))
    seal(paths)
    found = verify_study(paths).signatures
    assert found is not None and str(found) == "0 of 1 signatures"
    assert cosign(paths, "cyd").signatures.complete


def test_one_key_counts_once(tmp_path: Path) -> None:
    paths = asked_study(tmp_path, signers=(3, "ada", "bob", "cyd"))
    add_signer(paths.repository, "cyd@example.org", signing_key(paths, "bob").public_line, ["author"])
    git(paths.repository, "commit", "-q", "-am", "One key for two")
    seal(paths)
    cosign(paths, "bob")
    done = cosign_verb.cosign_study(paths, key=signing_key(paths, "bob"), principal="cyd@example.org")
    assert str(done.signatures) == "2 of 3 signatures"


@pytest.mark.parametrize(
    ("signers", "edition", "what"),
    [
        ((3, "ada", "bob"), 2, "is 3, but 2 principals are named"),
        ((1, "ada"), None, "edition 1 has no signers"),
    ],
)
def test_a_protocol_that_cannot_be_met_is_refused(
    tmp_path: Path, signers: tuple[int, *tuple[str, ...]], edition: int | None, what: str
) -> None:
    paths = asked_study(tmp_path, signers=signers, edition=edition)
    with pytest.raises(UsageError, match=what):
        seal(paths)


class TestTampering:
    def test_a_signature_that_is_gone(self, whole: StudyPaths) -> None:
        shutil.rmtree(whole.cosign)
        fails(whole, 6, "its signature is missing")

    def test_a_signature_of_other_bytes(self, whole: StudyPaths) -> None:
        file = whole.cosignature("bob@example.org")
        file.write_bytes(signing_key(whole, "bob").sign(b"other", namespace="prereg-seal"))
        fails(whole, 4, "does not match the signed bytes")

    def test_another_good_signature(self, whole: StudyPaths) -> None:
        key = load_key(make_key(whole.repository.parent / "key", "ecdsa 256"))
        add_signer(whole.repository, "bob@example.org", key.public_line, ["author"])
        armored = key.sign(whole.manifest.read_bytes(), namespace="prereg-seal")
        whole.cosignature("bob@example.org").write_bytes(armored)
        fails(whole, 6, r"is not the digest of seal/cosign/bob@example\.org\.sig")

    def test_a_signature_without_an_entry(self, whole: StudyPaths) -> None:
        whole.cosignature("cyd@example.org").write_bytes(
            signing_key(whole, "cyd").sign(whole.manifest.read_bytes(), namespace="prereg-seal")
        )
        fails(whole, 4, "has no ledger entry")

    def test_a_file_of_somebody_else(self, whole: StudyPaths) -> None:
        whole.cosignature("eve@example.org").write_bytes(b"x")
        fails(whole, 4, "none of the protocol's signers")
        whole.cosignature("eve@example.org").rename(whole.cosignature("ada@example.org"))
        fails(whole, 4, "sealed the study")
        whole.cosignature("ada@example.org").rename(whole.cosign / "note.txt")
        fails(whole, 1, "at no known place")

    def enter(self, paths: StudyPaths, who: str, data: bytes) -> None:
        """An entry and its file, as the verb would make them."""
        paths.cosign.mkdir(exist_ok=True)
        paths.cosignature(f"{who}@example.org").write_bytes(data)
        body = {"seal": digest(paths.manifest.read_bytes()), "signature_sha256": digest(data)}
        append(paths, "cosigned", body, f"{who}@example.org")
        finish(paths, who, paths.cosign)

    def test_a_signature_by_another_key(self, half: StudyPaths) -> None:
        armored = signing_key(half, "eve").sign(half.manifest.read_bytes(), namespace="prereg-seal")
        self.enter(half, "bob", armored)
        fails(half, 4, r"is not bob@example\.org's")

    def test_a_signature_in_another_namespace(self, half: StudyPaths) -> None:
        armored = signing_key(half, "bob").sign(half.manifest.read_bytes(), namespace="prereg-ledger")
        self.enter(half, "bob", armored)
        fails(half, 4, "is for namespace 'prereg-ledger'")

    def test_a_collection_before_the_seal_was_complete(self, half: StudyPaths) -> None:
        from tests.unit.study_fixture import ENVIRONMENTS

        body = {"seal": verify_study(half).seal, "attempt": 1, "environments": ENVIRONMENTS, "workers": 1}
        body |= {"network": "not-cut", "network_reason": "a test"}
        append(half, "collection-started", body, "col@example.org")
        resign_head(half)
        fails(half, 4, "a collection began with 1 of 2 signatures")


class TestKilled:
    """Whatever a run leaves, the next one of the same person finishes it."""

    @pytest.mark.parametrize("where", ["the entry", "the head"])
    def test_the_next_run_goes_on(
        self, half: StudyPaths, where: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from prereg.seal import enter as enter_verb

        class Killed(BaseException):
            pass

        def die(*_arguments: object, **_named: object) -> None:
            raise Killed

        with monkeypatch.context() as patch, pytest.raises(Killed):
            if where == "the entry":
                patch.setattr(enter_verb.LedgerWriter, "append", die)
            else:
                patch.setattr(enter_verb, "sign_head_and_commit", die)
            cosign(half, "bob")
        assert half.cosignature("bob@example.org").exists()
        with pytest.raises(VerificationFailed):
            verify_study(half)
        done = cosign(half, "bob")
        assert done.entry.seq == 2 and done.signatures.complete
        assert git(half.repository, "status", "--porcelain") == ""


def test_what_was_verified_is_signed_and_not_what_lies_there_by_then(
    half: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed = half.manifest.read_bytes()

    def swap(*_arguments: object, **_named: object) -> None:
        half.manifest.write_bytes(b"other bytes")

    with monkeypatch.context() as patch, pytest.raises(VerificationFailed):
        patch.setattr(cosign_verb, "check_own_signer", swap)  # the last thing before the signature
        cosign(half, "bob")
    armored = half.cosignature("bob@example.org").read_bytes()
    sshsig.verify(armored, sealed, namespace="prereg-seal", where="")


def test_the_standing_of_a_draft_is_none(tmp_path: Path) -> None:
    assert standing(asked_study(tmp_path)) is None
