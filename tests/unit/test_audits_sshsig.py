"""OpenSSH signatures and the two files of trust, against the real `ssh-keygen`."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from audits_tools import ROOT, fingerprint, make_key, public, run, sign

from audits.fault import Fault
from audits.jsonc import parse as parse_json
from audits.schema import Schema
from audits.sshsig import SignatureFault, parse, verify
from audits.trust import Trust, load_trust, parse_signers

MESSAGE = b"what is signed\n"
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("keys")
    return {kind: make_key(folder, kind, kind) for kind in ("ed25519", "rsa", "ecdsa")}


@pytest.mark.parametrize("kind", ["ed25519", "rsa", "ecdsa"])
def test_a_real_signature_verifies(keys: dict[str, Path], kind: str) -> None:
    signature = parse(sign(keys[kind], MESSAGE, "prereg-seal"))
    verify(MESSAGE, signature, "prereg-seal")
    assert signature.fingerprint == fingerprint(keys[kind])
    for other in (b"", MESSAGE + b"x", MESSAGE[:-1]):
        with pytest.raises(SignatureFault, match="altered"):
            verify(other, signature, "prereg-seal")
    with pytest.raises(SignatureFault, match="namespace"):
        verify(MESSAGE, signature, "prereg-ledger")


@pytest.mark.parametrize("kind", ["ed25519", "rsa", "ecdsa"])
def test_no_altered_byte_verifies(keys: dict[str, Path], kind: str) -> None:
    lines = sign(keys[kind], MESSAGE, "prereg-seal").split(b"\n")
    blob = base64.b64decode(b"".join(lines[1:-2]))
    for i in range(0, len(blob), 1 if kind == "ed25519" else 7):
        bent = blob[:i] + bytes([blob[i] ^ 1]) + blob[i + 1 :]
        with pytest.raises(SignatureFault, match=r"^(?!.*armor)"):
            verify(MESSAGE, parse(armor(bent)), "prereg-seal")


def test_another_namespace_hash_or_key_does_not_verify(keys: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(SignatureFault, match="namespace"):
        verify(MESSAGE, parse(sign(keys["ed25519"], MESSAGE, "file")), "prereg-seal")
    target = tmp_path / "m"
    target.write_bytes(MESSAGE)
    run(
        "ssh-keygen",
        "-Y",
        "sign",
        "-O",
        "hashalg=sha256",
        "-n",
        "prereg-seal",
        "-f",
        str(keys["ed25519"]),
        str(target),
    )
    with pytest.raises(SignatureFault, match="sha512"):
        parse((tmp_path / "m.sig").read_bytes())


def armor(blob: bytes, width: int = 70) -> bytes:
    text = base64.b64encode(blob)
    lines = [text[i : i + width] for i in range(0, len(text), width)]
    return b"\n".join([b"-----BEGIN SSH SIGNATURE-----", *lines, b"-----END SSH SIGNATURE-----", b""])


def wrapped(data: bytes, width: int) -> bytes:
    """The same signature, wrapped at another width."""
    return armor(base64.b64decode(b"".join(data.split(b"\n")[1:-2])), width)


ARMOR: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "no end": lambda data: data.replace(b"-----END SSH SIGNATURE-----", b""),
    "not base64": lambda data: data.replace(b"U1NI", b"****", 1),
    "text before": lambda data: b"x\n" + data,
    "text after": lambda data: data + b"x\n",
    "wrapped wider": lambda data: wrapped(data, 76),
    "wrapped narrower": lambda data: wrapped(data, 64),
    "in one line": lambda data: wrapped(data, 10_000),
    "an empty line": lambda data: data.replace(b"\n-----END", b"\n\n-----END"),
    "no final newline": lambda data: data[:-1],
    "two final newlines": lambda data: data + b"\n",
    "a space at a line's end": lambda data: data.replace(b"\n-----END", b" \n-----END"),
    "CRLF": lambda data: data.replace(b"\n", b"\r\n"),
    "cut": lambda data: b"\n".join([*data.split(b"\n")[:2], *data.split(b"\n")[-2:]]),
}


@pytest.mark.parametrize("name", ARMOR)
def test_a_broken_armor_is_refused(keys: dict[str, Path], name: str) -> None:
    good = sign(keys["ed25519"], MESSAGE, "prereg-seal")
    parse(good)
    with pytest.raises(SignatureFault):
        parse(ARMOR[name](good))


@pytest.mark.parametrize("kind", ["ed25519", "rsa", "ecdsa"])
def test_the_armor_of_ssh_keygen_is_the_only_one(keys: dict[str, Path], kind: str) -> None:
    good = sign(keys[kind], MESSAGE, "prereg-seal")
    assert wrapped(good, 70) == good
    parse(good)
    assert wrapped(good, 69) != good
    with pytest.raises(SignatureFault, match="70 columns"):
        parse(wrapped(good, 69))


def test_bits_that_base64_drops_are_zero(keys: dict[str, Path]) -> None:
    for length in range(8, 12):
        good = sign(keys["ed25519"], MESSAGE, "n" * length)
        parse(good)
        if (at := good.find(b"=")) > 0:
            alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
            other = alphabet[alphabet.index(good[at - 1]) + 1]
            with pytest.raises(SignatureFault):
                parse(good[: at - 1] + bytes([other]) + good[at:])
            return
    raise AssertionError("no signature had padding")


def test_a_blob_with_more_in_it_is_refused(keys: dict[str, Path]) -> None:
    lines = sign(keys["ed25519"], MESSAGE, "prereg-seal").split(b"\n")
    blob = base64.b64decode(b"".join(lines[1:-2]))
    namespace = b"prereg-seal" + bytes(4)
    assert blob.count(namespace) == 1
    reserved = blob.replace(namespace, b"prereg-seal\0\0\0\1x")
    for bent, says in ((reserved, "reserved"), (blob + b"\0", "after the end")):
        with pytest.raises(SignatureFault, match=says):
            parse(armor(bent))


def _trust(line: str, roles: dict[str, tuple[str, ...]] | None = None) -> Trust:
    return Trust(tuple(parse_signers(line.encode(), "allowed_signers")), roles or {"ann@x": ("author",)})


ALLOWED = {
    "plain": ("ann@x {key}", True),
    "with a comment": ("ann@x {key} Ann of X", True),
    "a list": ("bob@x,ann@x {key}", True),
    "another principal": ("bob@x {key}", False),
    "letter case": ("Ann@x {key}", False),
    "namespaces": ('ann@x namespaces="file,prereg-*" {key}', True),
    "other namespaces": ('ann@x namespaces="file" {key}', False),
    "valid": ('ann@x valid-after="20260101",valid-before="20270101Z" {key}', True),
    "from now on": ('ann@x valid-after="20261129120000Z" {key}', True),
    "up to now": ('ann@x valid-before="20261129120000Z" {key}', True),
    "not yet": ('ann@x valid-after="202611291201" {key}', False),
    "no more": ('ann@x valid-before="20261129115959" {key}', False),
    "comment only": ("# ann@x {key}", False),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_allowed_signers(keys: dict[str, Path], name: str) -> None:
    line, allowed = ALLOWED[name]
    trust = _trust(line.format(key=public(keys["ed25519"])))
    armored = sign(keys["ed25519"], MESSAGE, "prereg-seal")

    def check() -> str:
        return trust.check(
            MESSAGE, armored, namespace="prereg-seal", principal="ann@x", roles=("author",), at=NOW
        )

    if allowed:
        assert check() == fingerprint(keys["ed25519"])
    else:
        with pytest.raises(SignatureFault, match="not an allowed key"):
            check()


@pytest.mark.parametrize(("second", "fraction"), [(59, 0), (0, 0), (0, 999_999), (1, 0)])
def test_the_last_moment_of_a_key_is_that_of_ssh_keygen(
    keys: dict[str, Path], tmp_path: Path, second: int, fraction: int
) -> None:
    line = f'ann@x valid-before="20261129120000Z" {public(keys["ed25519"])}'
    armored = sign(keys["ed25519"], MESSAGE, "prereg-seal")
    (tmp_path / "signers").write_text(line + "\n")
    (tmp_path / "sig").write_bytes(armored)
    at = datetime(2026, 11, 29, 11 if second == 59 else 12, 59 if second == 59 else 0, second, fraction, UTC)
    command = ["ssh-keygen", "-Y", "verify", "-f", str(tmp_path / "signers"), "-I", "ann@x", "-n"]
    command += ["prereg-seal", "-s", str(tmp_path / "sig"), f"-Overify-time={at:%Y%m%d%H%M%S}Z"]
    said = subprocess.run(command, input=MESSAGE, capture_output=True, check=False).returncode == 0
    assert said == (second != 1)
    (signer,) = parse_signers(line.encode(), "allowed_signers")
    assert signer.allows("ann@x", parse(armored).key, "prereg-seal", at) == said


def test_a_hardware_key_in_the_file_does_not_hide_the_others(keys: dict[str, Path]) -> None:
    kind = b"sk-ssh-ed25519@openssh.com"
    blob = base64.b64encode(
        len(kind).to_bytes(4, "big") + kind + bytes(3) + bytes([32]) + bytes(32) + bytes(4)
    ).decode()
    trust = _trust(f"bob@x {kind.decode()} {blob}\nann@x {public(keys['ed25519'])}")
    armored = sign(keys["ed25519"], MESSAGE, "prereg-seal")
    trust.check(MESSAGE, armored, namespace="prereg-seal", principal="ann@x", roles=("author",), at=NOW)


def test_a_role_is_needed(keys: dict[str, Path]) -> None:
    trust = _trust(f"ann@x {public(keys['ed25519'])}", {"ann@x": ("collector",)})
    armored = sign(keys["ed25519"], MESSAGE, "prereg-seal")
    with pytest.raises(SignatureFault, match="no role author"):
        trust.check(MESSAGE, armored, namespace="prereg-seal", principal="ann@x", roles=("author",), at=NOW)


@pytest.mark.parametrize(
    "line",
    ["ann@x", "ann@x cert-authority {key}", "ann@x what {key}", "ann@x ssh-ed25519 !!!",
     "ann@x ssh-rsa {bare}", 'ann@x valid-after="tomorrow" {key}', "ann@x ssh-dss AAAA",
     'ann@x namespaces="a {key}', "*@x {key}", "an?@x {key}", "bob@x,!ann@x {key}", "ann@x,,bob@x {key}",
     'ann@x namespaces="a",namespaces="b" {key}', 'ann@x valid-after="20260101",Valid-After="20250101" {key}',
     'ann@x valid-before="20270101",valid-before="20280101" {key}',
     'ann@x valid-after="20270101Z",valid-before="20270101Z" {key}'],
)  # fmt: skip
def test_a_line_that_is_not_understood_is_a_fault(keys: dict[str, Path], line: str) -> None:
    key = public(keys["ed25519"])
    with pytest.raises(Fault, match="line 1"):
        parse_signers(line.format(key=key, bare=key.split()[1]).encode(), "allowed_signers")


@pytest.mark.parametrize("same", ["key", "principal", "neither"])
def test_a_reviewer_is_never_an_author(keys: dict[str, Path], tmp_path: Path, same: str) -> None:
    schema = Schema(parse_json((ROOT / "schemas/v1/roles.schema.json").read_bytes()))
    signers, file = tmp_path / "allowed_signers", tmp_path / "roles.json"
    other = "ed25519" if same == "key" else "ecdsa"
    signers.write_text(f"ann@x {public(keys['ed25519'])}\nrev@x {public(keys[other])}\n")
    roles = {"ann@x": ["author"], "rev@x": ["reviewer"]}
    if same == "principal":
        roles["ann@x"].append("reviewer")
    file.write_text(json.dumps({"schema": "prereg/roles/v1", "roles": roles}))
    if same == "neither":
        assert len(load_trust(signers, file, schema).signers) == 2
    else:
        with pytest.raises(Fault, match=r"both author and reviewer|one key"):
            load_trust(signers, file, schema)
