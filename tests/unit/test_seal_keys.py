"""Signing keys: files, keys that only ssh-keygen uses, and keys that an ssh-agent holds."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from prereg.errors import EvidenceIncomplete, PreregError, UsageError
from prereg.seal import agent, keys, sshsig
from prereg.seal.keys import generate_key, load_key
from prereg.seal.sshwire import string
from tests.unit.test_seal_sshsig import MESSAGE, keygen, needs_openssh

KINDS = {
    "ed25519": ["-t", "ed25519"],
    "rsa": ["-t", "rsa", "-b", "2048"],
    "rsa in PEM": ["-t", "rsa", "-b", "2048", "-m", "PEM"],
    "ecdsa 256": ["-t", "ecdsa", "-b", "256"],
    "ecdsa 521": ["-t", "ecdsa", "-b", "521"],
}
pytestmark = needs_openssh


def make_key(path: Path, kind: str) -> Path:
    assert keygen("-q", *KINDS[kind], "-N", "", "-f", str(path)).returncode == 0
    return path


@pytest.fixture(scope="module")
def ssh_agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A real agent of our own; its socket."""
    if shutil.which("ssh-agent") is None:
        pytest.skip("OpenSSH's agent is not installed")
    path = tmp_path_factory.mktemp("a") / "s"
    # An agent lives on if its test is killed: this one gives up by itself.
    process = subprocess.Popen(
        ["timeout", "300", "ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL
    )
    try:
        for _ in range(200):
            if path.exists():
                break
            threading.Event().wait(0.05)
        yield path
    finally:
        process.terminate()
        process.wait(timeout=20)


def add_to(socket_path: Path, key: Path) -> None:
    done = subprocess.run(
        ["ssh-add", "-q", str(key)], env={**os.environ, "SSH_AUTH_SOCK": str(socket_path)}, check=False
    )
    assert done.returncode == 0


def accepted_by_openssh(folder: Path, line: str, signature: bytes, namespace: str = "prereg-seal") -> bool:
    (folder / "as").write_text(f'ada@example.org namespaces="prereg-*" {line}\n')
    (folder / "sig").write_bytes(signature)
    verify = ["-Y", "verify", "-f", str(folder / "as"), "-I", "ada@example.org", "-n", namespace]
    return keygen(*verify, "-s", str(folder / "sig"), stdin=MESSAGE).returncode == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_file_of_any_kind_signs_as_openssh_accepts_it(kind: str, tmp_path: Path) -> None:
    key = load_key(make_key(tmp_path / "key", kind))
    made = key.sign(MESSAGE, namespace="prereg-seal")
    assert sshsig.parse(made, where="x").public_key == key.public_key
    assert accepted_by_openssh(tmp_path, key.public_line, made)
    assert not accepted_by_openssh(tmp_path, key.public_line, made, namespace="prereg-ledger")
    assert key.fingerprint in keygen("-lf", str(tmp_path / "key")).stdout.decode()
    assert "PRIVATE" not in repr(key)


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_of_the_agent_signs_as_openssh_accepts_it(
    kind: str, tmp_path: Path, ssh_agent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_key(tmp_path / "key", kind)
    add_to(ssh_agent, path)
    name = load_key(path).fingerprint
    path.unlink()  # only the agent has it now
    monkeypatch.setenv("SSH_AUTH_SOCK", str(ssh_agent))
    for key in (load_key(f"agent:{name}"), load_key(path.with_name("key.pub"))):
        assert key.fingerprint == name
        assert accepted_by_openssh(tmp_path, key.public_line, key.sign(MESSAGE, namespace="prereg-seal"))


def test_a_key_that_the_agent_has_not_is_named(
    tmp_path: Path, ssh_agent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", str(ssh_agent))
    key = generate_key(tmp_path / "key")
    with pytest.raises(UsageError, match="the ssh-agent has no key SHA256:") as caught:
        load_key(f"agent:{key.fingerprint}")
    assert caught.value.next_step
    with pytest.raises(UsageError, match="the ssh-agent has no key SHA256:") as caught:
        load_key(tmp_path / "key.pub")
    assert caught.value.next_step == f"use {tmp_path / 'key'}"


def test_without_an_agent_the_error_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    with pytest.raises(UsageError, match="no ssh-agent is running"):
        load_key("agent:SHA256:x")
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "nowhere"))
    with pytest.raises(EvidenceIncomplete, match="cannot be asked"):
        load_key("agent:SHA256:x")


def answering(path: Path, answers: list[bytes]) -> threading.Thread:
    """A false agent, that gives one answer a connection and then ends by itself."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(str(path))
    server.listen()
    server.settimeout(20)

    def serve() -> None:
        with server:
            for answer in answers:
                link, _ = server.accept()
                with link:
                    link.settimeout(20)
                    link.recv(65536)
                    link.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread


STRANGE = {
    "another answer": (string(bytes([5])), "refuses"),
    "cut off": (string(bytes([12]) + b"\0\0\0\1")[:-2], "cut off"),
    "fewer keys than it says": (string(bytes([12]) + b"\0\0\0\2" + string(b"x")), "cut off"),
    "bytes after": (string(bytes([12]) + b"\0\0\0\0x"), "after its end"),
    "empty": (b"\0\0\0\0", "an answer of 0 bytes"),
    "huge": (b"\xff\xff\xff\xff", "an answer of 4294967295 bytes"),
}


@pytest.mark.parametrize("name", STRANGE)
def test_an_agent_that_answers_strangely_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, what = STRANGE[name]
    thread = answering(tmp_path / "s", [answer])
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "s"))
    with pytest.raises(PreregError, match=what):
        agent.agent_keys()
    thread.join(20)


def test_a_signature_of_the_agent_is_verified_before_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = generate_key(tmp_path / "key").public_key
    listed = string(bytes([12]) + (1).to_bytes(4, "big") + string(wire) + string(b"c"))
    false = string(bytes([14]) + string(string(b"ssh-ed25519") + string(b"x" * 64)))
    thread = answering(tmp_path / "s", [listed, false])
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "s"))
    key = load_key(f"agent:{sshsig.fingerprint(wire)}")
    with pytest.raises(sshsig.BadSignature, match="does not match"):
        key.sign(MESSAGE, namespace="n")
    thread.join(20)


def test_a_signature_of_another_key_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = load_key(make_key(tmp_path / "a", "ecdsa 256")), generate_key(tmp_path / "b")

    def swapped(_path: Path, message: bytes, namespace: str, **_named: object) -> bytes:
        return other.sign(message, namespace=namespace)

    monkeypatch.setattr(keys.keygen, "sign", swapped)
    with pytest.raises(sshsig.BadSignature, match="by another key"):
        mine.sign(MESSAGE, namespace="n")


def test_another_armor_is_written_anew(tmp_path: Path) -> None:
    made = generate_key(tmp_path / "key").sign(MESSAGE, namespace="n")
    text = made[len(sshsig.BEGIN) : -len(sshsig.END)].replace(b"\n", b"")
    wide = b"".join(text[i : i + 76] + b"\r\n" for i in range(0, len(text), 76))
    assert sshsig.normalised(sshsig.BEGIN + wide + sshsig.END + b"\n", where="x") == made
    for bad in (b"", text, sshsig.BEGIN + b"!" + sshsig.END):
        with pytest.raises(sshsig.BadSignature):
            sshsig.normalised(bad, where="x")


class TestKeys:
    def test_a_key_is_private_and_never_overwritten(self, tmp_path: Path) -> None:
        path = tmp_path / "deep" / "key"
        key = generate_key(path)
        assert path.stat().st_mode & 0o777 == 0o600
        assert (tmp_path / "deep" / "key.pub").read_text() == key.public_line + "\n"
        assert load_key(path).public_key == key.public_key
        assert "PRIVATE" not in repr(key)
        with pytest.raises(UsageError, match="never overwritten"):
            generate_key(path)
        path.unlink()
        with pytest.raises(UsageError, match="never overwritten"):
            generate_key(path)

    def test_a_key_does_not_go_into_a_repository(self, tmp_path: Path) -> None:
        (tmp_path / ".git").mkdir()
        with pytest.raises(UsageError, match="does not belong in the repository"):
            generate_key(tmp_path / "sub" / "key")
        assert not (tmp_path / "sub").exists()
        generate_key(tmp_path / "sub" / "key", force=True)

    def test_a_key_that_others_can_read_is_refused(self, tmp_path: Path) -> None:
        generate_key(tmp_path / "key")
        (tmp_path / "key").chmod(0o640)
        with pytest.raises(UsageError, match="0640") as caught:
            load_key(tmp_path / "key")
        assert caught.value.next_step == f"chmod 600 {tmp_path / 'key'}"

    @needs_openssh
    @pytest.mark.parametrize(
        ("arguments", "what"),
        [
            (["-t", "rsa", "-b", "1024", "-N", ""], "RSA key of 1024 bits; 2048 are needed"),
        ],
    )
    def test_keys_that_cannot_sign_say_why(self, tmp_path: Path, arguments: list[str], what: str) -> None:
        path = tmp_path / "key"
        assert keygen("-q", *arguments, "-f", str(path)).returncode == 0
        with pytest.raises(UsageError, match=what) as caught:
            load_key(path)
        assert caught.value.where == str(path)
        assert caught.value.next_step

    def test_a_missing_a_public_and_a_foreign_file_say_why(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="no such key"):
            load_key(tmp_path / "key")
        generate_key(tmp_path / "key")
        (tmp_path / "key.pub").chmod(0o600)
        with pytest.raises(UsageError, match="public key") as caught:
            load_key(tmp_path / "key.pub")
        assert caught.value.next_step == f"use {tmp_path / 'key'}"
        (tmp_path / "junk").write_bytes(b"\0junk")
        for mode in (0o600, 0o644):
            (tmp_path / "junk").chmod(mode)
            with pytest.raises(UsageError, match="not a private key that OpenSSH can use") as caught:
                load_key(tmp_path / "junk")
            assert "chmod" not in str(caught.value.next_step)
        with pytest.raises(UsageError, match="cannot be read: Is a directory"):
            load_key(tmp_path)
