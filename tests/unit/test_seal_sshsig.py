"""OpenSSH signatures: with the real program both ways, and every malformed one refused."""

from __future__ import annotations

import base64
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from prereg.seal import sshsig
from prereg.seal.keys import generate_key, load_key

MESSAGE = b"The very bytes.\n"
needs_openssh = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="OpenSSH is not installed")


def keygen(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["ssh-keygen", *arguments], input=stdin, capture_output=True, check=False)


@needs_openssh
def test_ssh_keygen_accepts_what_we_sign(tmp_path: Path) -> None:
    key = generate_key(tmp_path / "key")
    (tmp_path / "sig").write_bytes(key.sign(MESSAGE, namespace="prereg-seal"))
    (tmp_path / "allowed").write_text(f'ada@example.org namespaces="prereg-seal" {key.public_line}\n')
    verify = [
        "-Y",
        "verify",
        "-f",
        str(tmp_path / "allowed"),
        "-I",
        "ada@example.org",
        "-s",
        str(tmp_path / "sig"),
    ]
    assert keygen(*verify, "-n", "prereg-seal", stdin=MESSAGE).returncode == 0
    assert keygen(*verify, "-n", "prereg-seal", stdin=MESSAGE + b"x").returncode != 0
    assert keygen(*verify, "-n", "prereg-ledger", stdin=MESSAGE).returncode != 0
    assert key.fingerprint in keygen("-lf", str(tmp_path / "key.pub")).stdout.decode()


@needs_openssh
@pytest.mark.parametrize(
    ("kind", "algorithm"),
    [
        (["-t", "ed25519"], b"ssh-ed25519"),
        (["-t", "rsa", "-b", "2048"], b"rsa-sha2-512"),
        (["-t", "ecdsa", "-b", "256"], b"ecdsa-sha2-nistp256"),
        (["-t", "ecdsa", "-b", "384"], b"ecdsa-sha2-nistp384"),
        (["-t", "ecdsa", "-b", "521"], b"ecdsa-sha2-nistp521"),
    ],
    ids=lambda v: v.decode() if isinstance(v, bytes) else "",
)
def test_we_accept_what_ssh_keygen_signs(tmp_path: Path, kind: list[str], algorithm: bytes) -> None:
    path = tmp_path / "key"
    assert keygen("-q", *kind, "-N", "", "-f", str(path)).returncode == 0
    (tmp_path / "m").write_bytes(MESSAGE)
    assert (
        keygen("-q", "-Y", "sign", "-f", str(path), "-n", "prereg-seal", str(tmp_path / "m")).returncode == 0
    )
    armored = (tmp_path / "m.sig").read_bytes()
    found = sshsig.verify(armored, MESSAGE, namespace="prereg-seal", where="m.sig")
    assert found.algorithm == algorithm
    line = (tmp_path / "key.pub").read_text()
    assert found.public_key == sshsig.wire_of(line, where="key.pub")
    assert sshsig.fingerprint(found.public_key) in keygen("-lf", str(path)).stdout.decode()
    with pytest.raises(sshsig.BadSignature, match="does not match"):
        sshsig.verify(armored, MESSAGE + b"x", namespace="prereg-seal", where="m.sig")


@needs_openssh
def test_we_sign_with_a_key_of_ssh_keygen_and_write_the_same_bytes(tmp_path: Path) -> None:
    path = tmp_path / "key"
    assert keygen("-q", "-t", "ed25519", "-N", "", "-f", str(path)).returncode == 0
    (tmp_path / "m").write_bytes(MESSAGE)
    assert keygen("-q", "-Y", "sign", "-f", str(path), "-n", "n", str(tmp_path / "m")).returncode == 0
    assert load_key(path).sign(MESSAGE, namespace="n") == (tmp_path / "m.sig").read_bytes()


@needs_openssh
def test_a_short_rsa_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    assert keygen("-q", "-t", "rsa", "-b", "1024", "-N", "", "-f", str(path)).returncode == 0
    (tmp_path / "m").write_bytes(MESSAGE)
    assert keygen("-q", "-Y", "sign", "-f", str(path), "-n", "n", str(tmp_path / "m")).returncode == 0
    with pytest.raises(sshsig.BadSignature, match="1024 bits"):
        sshsig.verify((tmp_path / "m.sig").read_bytes(), MESSAGE, namespace="n", where="m.sig")


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return generate_key(tmp_path_factory.mktemp("k") / "key").sign(MESSAGE, namespace="n")


def blob_of(armored: bytes) -> bytes:
    return base64.b64decode(armored[len(sshsig.BEGIN) : -len(sshsig.END)])


def armor(blob: bytes) -> bytes:
    text = base64.b64encode(blob)
    return sshsig.BEGIN + b"".join(text[i : i + 70] + b"\n" for i in range(0, len(text), 70)) + sshsig.END


def s(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def parts(blob: bytes) -> list[bytes]:
    """The five strings after magic and version."""
    found, at = [], 10
    while at < len(blob):
        size = int.from_bytes(blob[at : at + 4], "big")
        found.append(blob[at + 4 : at + 4 + size])
        at += 4 + size
    return found


def rebuilt(change: Callable[[list[bytes]], None]) -> Callable[[bytes], bytes]:
    def make(armored: bytes) -> bytes:
        blob = blob_of(armored)
        strings = parts(blob)
        change(strings)
        return armor(blob[:10] + b"".join(map(s, strings)))

    return make


def flipped(data: bytes) -> bytes:
    """Another last byte, whatever it was."""
    return data[:-1] + bytes([data[-1] ^ 1])


def at(i: int, data: bytes) -> Callable[[bytes], bytes]:
    return rebuilt(lambda strings: strings.__setitem__(i, data))


BAD: list[tuple[str, Callable[[bytes], bytes], str]] = [
    ("empty", lambda a: b"", "no SSH SIGNATURE lines"),
    ("no end", lambda a: a[:-5], "no SSH SIGNATURE lines"),
    ("bytes after", lambda a: a + b"\n", "no SSH SIGNATURE lines"),
    ("CRLF", lambda a: a.replace(b"\n", b"\r\n"), "no SSH SIGNATURE lines"),
    ("not base64", lambda a: a.replace(b"U", b"!", 1) if a.count(b"U") else a, "base64|SSH SIGNATURE"),
    ("other columns", lambda a: sshsig.BEGIN + base64.b64encode(blob_of(a)) + b"\n" + sshsig.END, "armored"),
    ("blank line", lambda a: a.replace(sshsig.BEGIN, sshsig.BEGIN + b"\n"), "armored"),
    ("too long", lambda a: sshsig.BEGIN + b"A" * 20_000 + sshsig.END, "too long"),
    ("no blob", lambda a: armor(b""), "start with SSHSIG|cut off"),
    ("other magic", lambda a: armor(b"SSHSIX" + blob_of(a)[6:]), "start with SSHSIG"),
    ("version 2", lambda a: armor(b"SSHSIG\0\0\0\2" + blob_of(a)[10:]), "version 2"),
    ("cut off", lambda a: armor(blob_of(a)[:-3]), "cut off"),
    ("trailing", lambda a: armor(blob_of(a) + b"x"), "after its end"),
    ("namespace", at(1, b"m"), "is for namespace 'm'"),
    ("namespace not ASCII", at(1, b"\xff"), "not ASCII"),
    ("reserved", at(2, b"x"), "reserved"),
    ("sha256", at(3, b"sha256"), "sha512"),
    ("other key", lambda a: at(0, flipped(parts(blob_of(a))[0]))(a), "does not match|cannot be read"),
    ("key of no type", at(0, b""), "cut off"),
    ("key of unknown type", at(0, s(b"ssh-dss") + b"x"), "cannot be read"),
    ("key without content", at(0, s(b"ssh-ed25519")), "cannot be read"),
    ("sk key", at(0, s(b"sk-ssh-ed25519@openssh.com") + s(b"x" * 32) + s(b"ssh:")), "cannot be read|known"),
    ("algorithm of another key", at(4, s(b"rsa-sha2-512") + s(b"x" * 64)), "are known"),
    ("sha1 RSA", at(4, s(b"ssh-rsa") + s(b"x" * 64)), "are known"),
    ("short value", at(4, s(b"ssh-ed25519") + s(b"x")), "does not match|cannot be read"),
    ("trailing in value", lambda a: at(4, parts(blob_of(a))[4] + b"x")(a), "after its end"),
    ("flipped value", lambda a: at(4, flipped(parts(blob_of(a))[4]))(a), "does not match"),
]


@pytest.mark.parametrize(("make", "what"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_a_malformed_signature_is_refused(signed: bytes, make: Callable[[bytes], bytes], what: str) -> None:
    sshsig.verify(signed, MESSAGE, namespace="n", where="x.sig")
    altered = make(signed)
    with pytest.raises(sshsig.BadSignature, match=what) as caught:
        sshsig.verify(altered, MESSAGE, namespace="n", where="x.sig")
    assert caught.value.where == "x.sig"


def test_every_single_byte_of_a_signature_counts(signed: bytes) -> None:
    for i in range(len(signed)):
        for bit in (1, 32):
            altered = signed[:i] + bytes([signed[i] ^ bit]) + signed[i + 1 :]
            with pytest.raises(sshsig.BadSignature):
                sshsig.verify(altered, MESSAGE, namespace="n", where="x.sig")


def test_lines_have_70_columns_at_most(signed: bytes) -> None:
    lines = signed.split(b"\n")[1:-2]
    assert [len(line) for line in lines[:-1]] == [70] * (len(lines) - 1)
