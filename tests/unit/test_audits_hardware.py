"""Keys of hardware tokens: vectors that a software token made, and the token itself where it is installed."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from audits_tools import fingerprint, public

from audits.fault import Fault
from audits.sshsig import Signature, SignatureFault, parse, verify
from audits.trust import Trust, parse_signers

HERE = Path(__file__).resolve().parent
FILE: dict[str, Any] = json.loads((HERE / "audits_hardware.json").read_text())
VECTORS = {vector["name"]: vector for vector in FILE["vectors"]}
MESSAGE, NAMESPACE = FILE["message"].encode(), FILE["namespace"]
ED, EC = b"sk-ssh-ed25519@openssh.com", b"sk-ecdsa-sha2-nistp256@openssh.com"
GOOD = {ED: "sk-ssh-ed25519, touched", EC: "sk-ecdsa-sha2-nistp256, touched"}
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
REGRESS = Path("/usr/lib/openssh/regress")
TOKEN = REGRESS / "misc/sk-dummy/sk-dummy.so"
installed = pytest.mark.skipif(
    not TOKEN.exists(), reason="the software token of the Debian package openssh-tests is not installed"
)


def armored(name: str) -> bytes:
    return "\n".join([*VECTORS[name]["signature"], ""]).encode()


def held(name: str) -> Signature:
    return parse(armored(name))


def check(data: bytes, line: str) -> str:
    trust = Trust(tuple(parse_signers(line.encode(), "allowed_signers")), {"ann@x": ("author",)})
    return trust.check(MESSAGE, data, namespace=NAMESPACE, principal="ann@x", roles=("author",), at=NOW)


@pytest.mark.parametrize("name", VECTORS)
def test_what_a_token_signed(name: str) -> None:
    """With its key in the file of trust; the others are refused as nobody touched the token."""
    line, refused = f"ann@x {VECTORS[name]['public']}", VECTORS[name]["refused"]
    if refused is not None:
        with pytest.raises(SignatureFault, match=refused):
            check(armored(name), line)
        return
    assert check(armored(name), line) == held(name).fingerprint
    for other in (b"", MESSAGE + b"x", MESSAGE[:-1]):
        with pytest.raises(SignatureFault, match="altered"):
            verify(other, held(name), NAMESPACE)
    with pytest.raises(SignatureFault, match="not an allowed key"):
        check(armored(name), f"bob@x {VECTORS[name]['public']}")


def test_the_fingerprint_is_of_the_whole_key_with_its_application(tmp_path: Path) -> None:
    for name, vector in VECTORS.items():
        (tmp_path / "key.pub").write_text(vector["public"] + "\n")
        assert held(name).fingerprint == fingerprint(tmp_path / "key")


@pytest.mark.parametrize("name", GOOD.values())
def test_no_altered_byte_of_key_flags_counter_or_signature_verifies(name: str) -> None:
    good = held(name)
    for field in ("key", "raw"):
        whole = getattr(good, field)
        for i in range(len(whole)):
            bent = whole[:i] + bytes([whole[i] ^ 0x02]) + whole[i + 1 :]
            parts = {"key": good.key, "raw": good.raw, field: bent}
            with pytest.raises(SignatureFault):
                verify(MESSAGE, Signature(namespace=NAMESPACE, **parts), NAMESPACE)


def _wire(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def _split(data: bytes, count: int) -> tuple[list[bytes], bytes]:
    parts = []
    for _ in range(count):
        size = int.from_bytes(data[:4], "big")
        parts.append(data[4 : 4 + size])
        data = data[4 + size :]
    return parts, data


def _named(raw: bytes, name: bytes) -> bytes:
    (_, value), rest = _split(raw, 2)
    return _wire(name, value) + rest


RAW: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "bytes after the counter": (lambda raw: raw + b"\0", "after the end"),
    "without the counter": (lambda raw: raw[:-4], "cut short"),
    "without flags and counter": (lambda raw: raw[:-5], "cut short"),
    "a webauthn signature": (lambda raw: _named(raw, b"webauthn-" + EC), "webauthn.*is not supported"),
    "the algorithm of a plain key": (lambda raw: _named(raw, b"ssh-ed25519"), "is not supported"),
    "the algorithm of the other token": (
        lambda raw: _named(raw, EC if ED in raw else ED),
        "is not supported",
    ),
    "another flag said": (lambda raw: raw[:-5] + b"\x05" + raw[-4:], "altered"),
    "nobody touched it": (lambda raw: raw[:-5] + b"\x04" + raw[-4:], "nobody touched"),
    "another counter": (lambda raw: raw[:-1] + b"\0", "altered"),
}


@pytest.mark.parametrize("name", RAW)
@pytest.mark.parametrize("kind", [ED, EC])
def test_a_signature_of_another_form(kind: bytes, name: str) -> None:
    bend, says = RAW[name]
    good = held(GOOD[kind])
    with pytest.raises(SignatureFault, match=says):
        verify(MESSAGE, Signature(key=good.key, namespace=NAMESPACE, raw=bend(good.raw)), NAMESPACE)


def test_a_plain_key_does_not_sign_as_a_token() -> None:
    """What the token signed is bound to its application: the key without it verifies nothing of it."""
    for kind, name in GOOD.items():
        good = held(name)
        parts, _ = _split(good.key, 3 if kind == ED else 4)
        plain = b"ssh-ed25519" if kind == ED else b"ecdsa-sha2-nistp256"
        (_, value), _ = _split(good.raw, 2)
        for key in (_wire(plain, *parts[1:-1]), _wire(kind, *parts[1:-1], b"ssh:other")):
            raw = good.raw if kind in key else _wire(plain, value)
            with pytest.raises(SignatureFault, match="altered"):
                verify(MESSAGE, Signature(key=key, namespace=NAMESPACE, raw=raw), NAMESPACE)


def _lines() -> Iterator[tuple[str, str]]:
    for kind, name in GOOD.items():
        told, whole = VECTORS[name]["public"].split()
        key = base64.b64decode(whole)
        bare, _ = _split(key, 2 if kind == ED else 3)
        for what, bent in (
            ("more after it", key + b"\0"),
            ("no application", _wire(*bare)),
            ("cut short", key[:-1]),
        ):
            yield f"{told}: {what}", f"ann@x {told} {base64.b64encode(bent).decode()}"
        for option in ("no-touch-required", "verify-required", 'application="ssh:"'):
            yield f"{told}: {option}", f"ann@x {option} {told} {whole}"
        yield f"{told}: a certificate", f"ann@x {told.replace('@', '-cert-v01@')} {whole}"
        yield f"webauthn-{told}", f"ann@x webauthn-{told} {whole}"
    other = VECTORS[GOOD[EC]]["public"].split()[1]
    yield "a key of the other kind", f"ann@x {ED.decode()} {other}"


LINES = dict(_lines())


@pytest.mark.parametrize("name", LINES)
def test_a_line_that_does_not_hold_such_a_key_makes_the_file_refused(name: str) -> None:
    good = f"bob@x {VECTORS[GOOD[ED]]['public']}\n"
    parse_signers(good.encode(), "allowed_signers")
    with pytest.raises(Fault, match="line 2 cannot be read"):
        parse_signers((good + LINES[name] + "\n").encode(), "allowed_signers")


@pytest.mark.parametrize("size", [31, 33, 65])
def test_a_point_of_another_size_or_form_is_no_key(size: int) -> None:
    """A point in short form would be the same key under another fingerprint."""
    for kind, name in GOOD.items():
        good = held(name)
        parts, _ = _split(good.key, 3 if kind == ED else 4)
        point = parts[-2]
        short = (b"\x02" if point[-1] % 2 == 0 else b"\x03") + point[1:33]
        if size == len(point):
            continue
        bent = short if kind == EC and size == 33 else point.ljust(size, b"\0")[:size]
        key = _wire(*parts[:-2], bent, parts[-1])
        with pytest.raises(SignatureFault, match=r"cannot be used|uncompressed"):
            verify(MESSAGE, Signature(key=key, namespace=NAMESPACE, raw=good.raw), NAMESPACE)


def _keygen(*arguments: str, feed: bytes | None = None) -> bytes:
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "SSH_SK_PROVIDER": str(TOKEN)}
    command = ["ssh-keygen", "-q", *arguments]
    return subprocess.run(command, input=feed, env=environment, check=True, capture_output=True).stdout


@installed
@pytest.mark.parametrize("kind", ["ed25519-sk", "ecdsa-sk"])
@pytest.mark.parametrize("application", ["ssh:", "ssh:prereg"])
def test_a_fresh_key_of_the_software_token(tmp_path: Path, kind: str, application: str) -> None:
    for touched in (True, False):
        key = tmp_path / f"key-{touched}"
        options = ["-O", f"application={application}"] + ([] if touched else ["-O", "no-touch-required"])
        _keygen("-t", kind, "-N", "", "-C", kind, *options, "-f", str(key))
        data = _keygen("-Y", "sign", "-f", str(key), "-n", NAMESPACE, feed=MESSAGE)
        if touched:
            assert check(data, f"ann@x {public(key)}") == fingerprint(key)
        else:
            with pytest.raises(SignatureFault, match="nobody touched"):
                check(data, f"ann@x {public(key)}")


@installed
def test_a_real_webauthn_signature_is_refused() -> None:
    folder = REGRESS / "unittests/sshsig/testdata"
    signature = parse((folder / "ecdsa_sk_webauthn.sig").read_bytes())
    with pytest.raises(SignatureFault, match=r"webauthn.*is not supported"):
        verify((folder / "signed-data").read_bytes(), signature, "unittest")
    plain = parse((folder / "ecdsa_sk.sig").read_bytes())
    verify((folder / "signed-data").read_bytes(), plain, "unittest")
