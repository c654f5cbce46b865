"""Keys that OpenSSH knows and that nobody's signature here is checked by."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from prereg.errors import UsageError
from prereg.seal import sshsig
from prereg.seal.allowed_signers import parse_allowed_signers
from prereg.seal.keys import read_public
from prereg.seal.sshwire import string
from prereg.seal.trust import add_signer

ADA = "ada@example.org"


def weak_keys() -> dict[str, tuple[str, str]]:
    """Keys that OpenSSH knows and no signature of which counts, each as a line, and what is said of it."""
    ed25519, p256 = string(b"\1" * 32), string(b"nistp256") + string(b"\2" + b"\1" * 32)

    def line(kind: bytes, rest: bytes) -> str:
        return f"{kind.decode()} {base64.b64encode(string(kind) + rest).decode()}"

    def short(bits: int) -> str:
        return line(b"ssh-rsa", string(b"\1\0\1") + string(b"\0" + ((1 << bits) - 1).to_bytes(bits // 8 + 1)))

    cert = b"ssh-ed25519-cert-v01@openssh.com"
    return {
        "RSA of 1024 bits": (short(1024), "RSA key of 1024 bits; 2048 are needed"),
        "RSA of 2047 bits": (short(2047), "RSA key of 2047 bits; 2048 are needed"),
        "DSA": (line(b"ssh-dss", string(b"\1") * 4), "type ssh-dss"),
        "a certificate": (line(cert, string(b"n" * 32) + ed25519), f"type {cert.decode()}"),
        "a compressed point": (line(b"ecdsa-sha2-nistp256", p256), "not an OpenSSH public key"),
        "a type that is not its own": (
            "ssh-rsa " + line(b"ssh-ed25519", ed25519).split()[1],
            "not an OpenSSH public key",
        ),
    }


@pytest.mark.parametrize("name", weak_keys())
def test_a_key_whose_signatures_never_count_refuses_the_file(name: str, tmp_path: Path) -> None:
    line, what = weak_keys()[name]
    with pytest.raises(UsageError, match=what) as caught:
        parse_allowed_signers(f"{ADA} {line}\n".encode(), where="as")
    assert caught.value.where == "as:1"
    with pytest.raises(UsageError, match=what):
        add_signer(tmp_path, ADA, line, ["author"])
    assert not (tmp_path / "trust").exists()
    (tmp_path / "key.pub").write_text(f"{line} of somebody\n")
    with pytest.raises(UsageError, match=what) as caught:
        read_public(tmp_path / "key.pub")
    assert caught.value.next_step in (
        sshsig.ANOTHER,
        "name the plain .pub file that the certificate is for",
        "name the file that ends in .pub",
    )
