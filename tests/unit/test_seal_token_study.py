"""A whole study by hardware tokens: sealed, collected, analysed and audited, each by a token of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prereg.analyse.run import analyse_study
from prereg.audit.run import audit_study
from prereg.errors import VerificationFailed
from prereg.seal import sshsig
from prereg.seal.keys import read_public
from prereg.seal.trust import add_signer
from prereg.seal.verify import verify_report, verify_study
from prereg.store.layout import StudyPaths
from tests.unit.study_fixture import fabricate_records, git, make_study, seal, signing_key
from tests.unit.test_cli import prereg
from tests.unit.token_fixture import TOKEN, make_token_key, needs_token

pytestmark = needs_token
KINDS = {"ada": "ed25519-sk", "col": "ecdsa-sk", "rex": "ecdsa-sk"}
ROLES = {"ada": "author", "col": "collector", "rex": "reviewer"}


def token_study(folder: Path, *options: str) -> StudyPaths:
    """The coin, whose people have tokens only."""
    paths = make_study(folder)
    for name in ("allowed_signers", "roles.json"):
        (paths.repository / "trust" / name).unlink()
    for who, kind in KINDS.items():
        for end in ("", ".pub"):
            (folder / "keys" / f"{who}{end}").unlink()
        line = read_public(make_token_key(folder / "keys" / who, kind, *options).with_name(f"{who}.pub"))
        add_signer(paths.repository, f"{who}@example.org", line, [ROLES[who]])  # type: ignore[list-item]
    git(paths.repository, "add", "-A")
    git(paths.repository, "commit", "-q", "-m", "Tokens")
    return paths


def test_a_study_by_tokens_agrees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_SK_PROVIDER", str(TOKEN))
    paths = token_study(tmp_path)
    seal(paths)
    fabricate_records(paths)
    analyse_study(paths, key=signing_key(paths), principal="ada@example.org")
    run = audit_study(paths, key=signing_key(paths, "rex"), principal="rex@example.org")
    assert run.result == "AGREES", run.text
    # Whoever checks needs neither the tokens nor ssh-keygen.
    monkeypatch.delenv("SSH_SK_PROVIDER")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert {s.status for s in verify_report(paths)} == {"ok"}
    kinds = {
        sshsig.parse(file.read_bytes(), where=file.name).algorithm.decode()
        for file in (paths.manifest_signature, paths.head_signature, paths.audit_signature)
    }
    assert kinds == {"sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"}


def test_a_seal_by_a_token_that_nobody_touched_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSH_SK_PROVIDER", str(TOKEN))
    paths = token_study(tmp_path, "no-touch-required")
    with pytest.raises(sshsig.BadSignature, match="nobody touched"):
        seal(paths)
    assert not paths.seal.exists()
    assert git(paths.repository, "status", "--porcelain") == ""
    # Somebody who does not look signs all the same; whoever verifies sees it.
    monkeypatch.setattr(sshsig, "_bad", lambda *_: None)
    seal(paths)
    monkeypatch.undo()
    with pytest.raises(VerificationFailed, match=r"nobody touched.*\(step 4, signature\)"):
        verify_study(paths)


def test_the_list_of_keys_shows_which_are_of_tokens(tmp_path: Path) -> None:
    paths = token_study(tmp_path)
    where = ["--repository", str(paths.repository)]
    value = json.loads(prereg("key", "list", "--json", *where).stdout)
    ed25519, ecdsa = "sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"
    assert [s["type"] for s in value["signers"]] == [ed25519, ecdsa, ecdsa]
    assert "sk-ssh-ed25519" in prereg("key", "list", *where).stderr
    public = make_token_key(tmp_path / "keys" / "bob").with_name("bob.pub")
    added = prereg("key", "add", str(public), "--principal", "bob@example.org", "--role", "author", *where)
    assert added.returncode == 0, added.stderr
    said = prereg("key", "new", "--help").stdout
    assert "ed25519-sk" in said
