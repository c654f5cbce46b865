"""Keys of hardware tokens, and key files behind a passphrase: what ssh-keygen signs with for us."""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prereg.errors import UsageError, WrongState
from prereg.seal import keygen, sshsig, sshsk
from prereg.seal.allowed_signers import parse_allowed_signers
from prereg.seal.keys import load_key, read_public
from prereg.seal.sshwire import Cut, string
from tests.unit.test_seal_keys import accepted_by_openssh, add_to, ssh_agent
from tests.unit.test_seal_sshsig import MESSAGE, blob_of, needs_openssh, parts
from tests.unit.test_seal_sshsig import armor as armored
from tests.unit.test_seal_sshsig import keygen as run_keygen
from tests.unit.token_fixture import TOKEN, make_token_key, needs_token

__all__ = ["ssh_agent"]

FILE: dict[str, Any] = json.loads(Path(__file__).with_name("seal_tokens.json").read_text())
VECTORS = {v["name"]: v for v in FILE["vectors"]}
TOUCHED = [name for name, vector in VECTORS.items() if vector["touched"]]
ASKPASS = "#!/bin/sh\necho secret-phrase\n"


def signature(name: str) -> bytes:
    return "\n".join([*VECTORS[name]["signature"], ""]).encode()


def verified(data: bytes, message: bytes = MESSAGE) -> sshsig.SshSignature:
    return sshsig.verify(data, message, namespace=FILE["namespace"], where="sig")


class TestVectors:
    """Signatures that OpenSSH's software token made."""

    @pytest.mark.parametrize("name", TOUCHED)
    def test_a_token_that_was_touched_signs(self, name: str) -> None:
        found = verified(signature(name))
        assert found.public_key == sshsig.wire_of(VECTORS[name]["public"], where="key")
        assert (found.flags, found.counter) == (1, 0x12345678)
        for other in (b"", MESSAGE + b"x", MESSAGE[:-1]):
            with pytest.raises(sshsig.BadSignature, match="does not match"):
                verified(signature(name), other)

    @pytest.mark.parametrize("name", sorted(VECTORS.keys() - TOUCHED))
    def test_a_token_that_nobody_touched_does_not(self, name: str) -> None:
        found = sshsig.parse(signature(name), where="sig")
        assert found.flags == 0
        data = sshsig._signed(MESSAGE, b"prereg-seal")
        sshsk.verify(found.public_key, found.value, data, flags=0, counter=found.counter)  # all else is good
        with pytest.raises(sshsig.BadSignature, match="nobody touched"):
            verified(signature(name))

    @pytest.mark.parametrize("name", TOUCHED)
    def test_no_byte_of_a_signature_can_be_changed(self, name: str) -> None:
        blob = blob_of(signature(name))
        for i in range(len(blob)):
            with pytest.raises(sshsig.BadSignature):
                verified(armored(blob[:i] + bytes([blob[i] ^ 2]) + blob[i + 1 :]))

    @pytest.mark.parametrize("name", VECTORS)
    def test_a_line_of_allowed_signers_has_the_whole_key(self, name: str) -> None:
        line = VECTORS[name]["public"]
        (signer,) = parse_allowed_signers(f"ada@example.org {line} of a token".encode(), where="as")
        assert signer.public_line == line
        kind, key = line.split()
        wire = base64.b64decode(key)
        other = "sk-ecdsa-sha2-nistp256@openssh.com" if "ed25519" in kind else "sk-ssh-ed25519@openssh.com"
        for bad in (
            f"{other} {key}",
            f"{kind} {base64.b64encode(wire + b'x').decode()}",
            f"{kind} {base64.b64encode(wire[:-1]).decode()}",
        ):
            with pytest.raises(UsageError, match="is not an OpenSSH public key"):
                parse_allowed_signers(f"ada@example.org {bad}".encode(), where="as")

    @pytest.mark.parametrize("option", ["no-touch-required", "verify-required"])
    def test_a_line_that_says_otherwise_of_touch_is_refused(self, option: str) -> None:
        line = f"ada@example.org {option} {VECTORS[TOUCHED[0]]['public']}"
        with pytest.raises(UsageError, match="option"):
            parse_allowed_signers(line.encode(), where="as")


def rebuilt(name: str, change: Callable[[list[bytes], bytes], bytes]) -> bytes:
    """A vector whose inner signature is made of other strings, or has another end."""
    strings = parts(blob_of(signature(name)))
    inner = strings[4]
    sizes = [int.from_bytes(inner[:4], "big")]
    sizes.append(int.from_bytes(inner[4 + sizes[0] : 8 + sizes[0]], "big"))
    cut = 8 + sum(sizes)
    two = [inner[4 : 4 + sizes[0]], inner[8 + sizes[0] : cut]]
    strings[4] = change(two, inner[cut:])
    return armored(blob_of(signature(name))[:10] + b"".join(map(string, strings)))


def plain(two: list[bytes], end: bytes) -> bytes:
    return string(two[0]) + string(two[1]) + end


OTHER: dict[str, tuple[Callable[[list[bytes], bytes], bytes], str]] = {
    "without the counter": (lambda two, end: plain(two, end[:-4]), "is cut off"),
    "without flags and counter": (lambda two, end: plain(two, b""), "is cut off"),
    "with bytes behind": (lambda two, end: plain(two, end + b"\0"), "bytes after its end"),
    "by webauthn": (lambda two, end: plain([b"webauthn-" + two[0], two[1]], end), "bytes after its end"),
    "by webauthn, without flags": (lambda two, end: plain([b"webauthn-" + two[0], two[1]], b""), "uses"),
    "of a plain key": (lambda two, end: plain([b"ssh-ed25519", two[1]], b""), "uses"),
    "of the other token": (
        lambda two, end: plain([sshsk.ECDSA if two[0] == sshsk.ED25519 else sshsk.ED25519, two[1]], end),
        "uses",
    ),
    "another counter": (lambda two, end: plain(two, end[:-1] + b"\0"), "does not match"),
    "another flag": (lambda two, end: plain(two, b"\x05" + end[1:]), "does not match"),
    "flags without touch": (lambda two, end: plain(two, b"\x04" + end[1:]), "nobody touched"),
}


@pytest.mark.parametrize("kind", OTHER)
@pytest.mark.parametrize("name", TOUCHED[:2])
def test_a_signature_of_another_form_is_refused(name: str, kind: str) -> None:
    change, what = OTHER[kind]
    with pytest.raises(sshsig.BadSignature, match=what):
        verified(rebuilt(name, change))


def test_a_key_on_another_curve_or_with_a_compressed_point_is_none() -> None:
    wire = sshsig.wire_of(VECTORS["P-256, touched"]["public"], where="key")
    at = wire.index(b"\x04")
    point = wire[at : at + 65]
    head, end = string(sshsk.ECDSA), string(b"ssh:")
    assert head + string(b"nistp256") + string(point) + end == wire
    with pytest.raises(Cut, match="another curve"):
        sshsk.token_key(head + string(b"nistp384") + string(point) + end)
    with pytest.raises(Cut, match="compressed"):
        sshsk.token_key(head + string(b"nistp256") + string(bytes([2 + point[64] % 2]) + point[1:33]) + end)
    with pytest.raises(ValueError, match=r"EC key|curve"):
        sshsk.token_key(head + string(b"nistp256") + string(point[:-1] + bytes([point[-1] ^ 1])) + end)


@needs_token
class TestToken:
    """The software token, through ssh-keygen and through an agent."""

    @pytest.fixture(autouse=True)
    def provider(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SSH_SK_PROVIDER", str(TOKEN))

    @pytest.mark.parametrize("kind", ["ed25519-sk", "ecdsa-sk"])
    def test_the_file_of_a_token_signs_as_openssh_accepts_it(
        self, kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        key = load_key(make_token_key(tmp_path / "key", kind))
        assert key.public_line == read_public(tmp_path / "key.pub")
        assert capfd.readouterr().err == ""  # nobody is asked before something is to be signed
        made = key.sign(MESSAGE, namespace="prereg-seal")
        assert "Confirm user presence" in capfd.readouterr().err
        assert accepted_by_openssh(tmp_path, key.public_line, made)
        assert not accepted_by_openssh(tmp_path, key.public_line, made, namespace="prereg-ledger")

    def test_an_agent_that_holds_it_signs_with_it(
        self, tmp_path: Path, ssh_agent: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = make_token_key(tmp_path / "key")
        if not _agent_takes(ssh_agent, path):
            pytest.skip("this agent allows no other library of tokens than its own")
        monkeypatch.setenv("SSH_AUTH_SOCK", str(ssh_agent))
        key = load_key(path.with_name("key.pub"))
        assert accepted_by_openssh(tmp_path, key.public_line, key.sign(MESSAGE, namespace="prereg-seal"))

    def test_a_key_that_needs_no_touch_does_not_sign(self, tmp_path: Path) -> None:
        key = load_key(make_token_key(tmp_path / "key", "ed25519-sk", "no-touch-required"))
        with pytest.raises(sshsig.BadSignature, match="nobody touched"):
            key.sign(MESSAGE, namespace="prereg-seal")

    def test_without_the_token_the_error_says_so(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        key = load_key(make_token_key(tmp_path / "key"))
        monkeypatch.delenv("SSH_SK_PROVIDER")
        with pytest.raises(UsageError, match="no hardware token that holds this key is there") as caught:
            key.sign(MESSAGE, namespace="n")
        assert caught.value.where == str(tmp_path / "key") and caught.value.next_step
        monkeypatch.setenv("SSH_SK_PROVIDER", str(tmp_path / "nothing.so"))
        with pytest.raises(UsageError, match="cannot talk to the token") as caught:
            key.sign(MESSAGE, namespace="n")
        assert caught.value.where == "SSH_SK_PROVIDER"

    def test_a_passphrase_and_a_token_together(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        asked(tmp_path, ASKPASS, monkeypatch)
        key = load_key(make_token_key(tmp_path / "key", passphrase="secret-phrase"))
        assert accepted_by_openssh(tmp_path, key.public_line, key.sign(MESSAGE, namespace="prereg-seal"))


def _agent_takes(socket_path: Path, key: Path) -> bool:
    try:
        add_to(socket_path, key)
    except AssertionError:
        return False
    return True


def asked(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passphrases come from a program."""
    program = folder / "askpass"
    program.write_text(script)
    program.chmod(0o755)
    monkeypatch.setenv("SSH_ASKPASS", str(program))
    monkeypatch.setenv("SSH_ASKPASS_REQUIRE", "force")


LOCKED = {
    "ed25519": ["-t", "ed25519"],
    "rsa": ["-t", "rsa", "-b", "2048"],
    "rsa in PEM": ["-t", "rsa", "-b", "2048", "-m", "PEM"],
    "ecdsa": ["-t", "ecdsa", "-b", "256"],
}


@needs_openssh
class TestPassphrase:
    """A key file behind a passphrase is one that ssh-keygen can use: it asks for it."""

    def locked(self, path: Path, kind: str = "ed25519") -> Path:
        assert run_keygen("-q", *LOCKED[kind], "-N", "secret-phrase", "-f", str(path)).returncode == 0
        return path

    @pytest.mark.parametrize("kind", LOCKED)
    def test_it_is_asked_for_when_something_is_signed(
        self, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked(tmp_path, "#!/bin/sh\nexit 1\n", monkeypatch)
        key = load_key(self.locked(tmp_path / "key", kind))
        assert key.public_line == read_public(tmp_path / "key.pub")
        asked(tmp_path, ASKPASS, monkeypatch)
        assert accepted_by_openssh(tmp_path, key.public_line, key.sign(MESSAGE, namespace="prereg-seal"))

    @pytest.mark.parametrize("answer", ["echo wrong", "exit 1"])
    def test_a_wrong_one_and_none_say_why(
        self, answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked(tmp_path, f"#!/bin/sh\n{answer}\n", monkeypatch)
        key = load_key(self.locked(tmp_path / "key"))
        with pytest.raises(UsageError, match="the right one was not given") as caught:
            key.sign(MESSAGE, namespace="n")
        assert "ssh-add" in str(caught.value.next_step)

    def test_who_does_not_answer_is_not_waited_for(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked(tmp_path, "#!/bin/sh\nexec sleep 60\n", monkeypatch)
        path = self.locked(tmp_path / "key")
        for token, what in (
            (True, "nobody touched the hardware token"),
            (False, "nobody gave the passphrase"),
        ):
            with pytest.raises(WrongState, match=what):
                keygen.sign(path, MESSAGE, "n", token=token, seconds=0.5)

    def test_another_form_needs_its_public_half_beside(self, tmp_path: Path) -> None:
        path = self.locked(tmp_path / "key", "rsa in PEM")
        path.with_name("key.pub").unlink()
        with pytest.raises(UsageError, match="its public half does not lie beside it") as caught:
            load_key(path)
        assert caught.value.next_step == f"ssh-keygen -y -f {path} > {path}.pub"

    def test_a_public_half_of_another_key_signs_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked(tmp_path, ASKPASS, monkeypatch)
        path = self.locked(tmp_path / "key", "rsa in PEM")
        other = self.locked(tmp_path / "other", "rsa")
        shutil.copy(other.with_name("other.pub"), path.with_name("key.pub"))
        with pytest.raises((UsageError, sshsig.BadSignature)):
            load_key(path).sign(MESSAGE, namespace="n")

    def test_without_ssh_keygen_the_error_says_so(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = self.locked(tmp_path / "key")
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(UsageError, match="OpenSSH is not installed"):
            load_key(path)

    def test_on_a_terminal_it_is_asked_there(self, tmp_path: Path) -> None:
        """As on a desktop: SSH_ASKPASS would be allowed, and names nothing."""
        path = self.locked(tmp_path / "key")
        pid, terminal = os.forkpty()
        if pid == 0:
            code = 1
            try:
                os.environ |= {"DISPLAY": ":0", "SSH_ASKPASS": "/nonexistent"}
                os.environ.pop("SSH_ASKPASS_REQUIRE", None)
                load_key(path).sign(MESSAGE, namespace="n")
                code = 0
            finally:
                os._exit(code)
        seen = b""
        while b"assphrase" not in seen:
            seen += os.read(terminal, 1024)
        os.write(terminal, b"secret-phrase\n")
        while True:
            try:
                if not (piece := os.read(terminal, 1024)):
                    break
            except OSError:  # the terminal's other end is closed
                break
            seen += piece
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
        assert os.waitstatus_to_exitcode(status) == 0, seen
        assert b"secret-phrase" not in seen
