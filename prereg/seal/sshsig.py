"""OpenSSH signatures (SSHSIG), so that `ssh-keygen -Y` signs and checks the same files.

The format is OpenSSH's PROTOCOL.sshsig: a blob that carries the public key, a namespace and a signature over
the namespace and the SHA-512 of the message, in 70-column base64 between two marker lines. Only one spelling
of that armor is accepted: no byte of a signature file can be changed and leave it valid.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from typing import NoReturn

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils
from cryptography.hazmat.primitives.serialization import load_ssh_public_key

from prereg.errors import VerificationFailed

BEGIN = b"-----BEGIN SSH SIGNATURE-----\n"
END = b"-----END SSH SIGNATURE-----\n"
MAGIC = b"SSHSIG"
VERSION = 1
HASH = b"sha512"
COLUMNS = 70
MAX_ARMORED = 16_384
"""Longest signature file that is looked at, in bytes; RSA of 8192 bits needs about 3,000."""
MIN_RSA_BITS = 2048

_CURVES: dict[bytes, tuple[type[ec.EllipticCurve], type[hashes.HashAlgorithm]]] = {
    b"ecdsa-sha2-nistp256": (ec.SECP256R1, hashes.SHA256),
    b"ecdsa-sha2-nistp384": (ec.SECP384R1, hashes.SHA384),
    b"ecdsa-sha2-nistp521": (ec.SECP521R1, hashes.SHA512),
}
_RSA: dict[bytes, type[hashes.HashAlgorithm]] = {
    b"rsa-sha2-256": hashes.SHA256,
    b"rsa-sha2-512": hashes.SHA512,
}


class BadSignature(VerificationFailed):
    """A signature file is not one, or does not belong to these bytes, this namespace or this key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SshSignature:
    """An unarmored signature; nothing in it is trusted before `verify`."""

    public_key: bytes
    """The signer's public key in OpenSSH's wire form."""
    namespace: str
    algorithm: bytes
    value: bytes


def fingerprint(public_key: bytes) -> str:
    """OpenSSH's name of a key: `SHA256:` and the unpadded base64 of its wire form's digest."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(public_key).digest()).decode().rstrip("=")


def sign(key: ed25519.Ed25519PrivateKey, public_key: bytes, message: bytes, *, namespace: str) -> bytes:
    """The armored signature of `message`; Ed25519 makes the same bytes each time."""
    name = namespace.encode()
    value = _string(b"ssh-ed25519") + _string(key.sign(_signed(message, name)))
    blob = MAGIC + VERSION.to_bytes(4, "big")
    blob += _string(public_key) + _string(name) + _string(b"") + _string(HASH) + _string(value)
    return _armor(blob)


def parse(armored: bytes, *, where: str) -> SshSignature:
    """Read an armored signature. Raises BadSignature for anything but the form that `sign` writes."""
    if len(armored) > MAX_ARMORED:
        _bad("is too long for a signature", where)
    if not armored.startswith(BEGIN) or not armored.endswith(END):
        _bad("has no SSH SIGNATURE lines", where)
    try:
        blob = base64.b64decode(armored[len(BEGIN) : -len(END)].replace(b"\n", b""), validate=True)
    except binascii.Error:
        _bad("is not base64", where)
    if _armor(blob) != armored:
        _bad("is not armored as OpenSSH does it", where)
    reader = _Reader(blob, where)
    if reader.take(len(MAGIC)) != MAGIC:
        _bad("does not start with SSHSIG", where)
    if (version := reader.number()) != VERSION:
        _bad(f"has version {version}, not {VERSION}", where)
    public_key, namespace, reserved, hash_name, signature = (reader.string() for _ in range(5))
    reader.end()
    if reserved:
        _bad("uses the reserved field", where)
    if hash_name != HASH:
        _bad(f"hashes with {hash_name!r:.40}, not with sha512", where)
    inner = _Reader(signature, where)
    algorithm, value = inner.string(), inner.string()
    inner.end()
    try:
        name = namespace.decode("ascii")
    except UnicodeDecodeError:
        _bad("its namespace is not ASCII", where)
    return SshSignature(public_key=public_key, namespace=name, algorithm=algorithm, value=value)


def verify(armored: bytes, message: bytes, *, namespace: str, where: str) -> SshSignature:
    """Check that `armored` signs `message` in `namespace`; the key in it is still to be trusted.

    Raises BadSignature otherwise. Ed25519, RSA (2048 bits and more, SHA-2) and the NIST curves are known.
    """
    found = parse(armored, where=where)
    if found.namespace != namespace:
        _bad(f"is for namespace {found.namespace!r:.80}, not {namespace!r}", where)
    try:
        _verify_value(found, _signed(message, namespace.encode()), where)
    except InvalidSignature:
        _bad("does not match the signed bytes", where)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        _bad(f"its key or value cannot be read: {error}", where)
    return found


def _verify_value(found: SshSignature, data: bytes, where: str) -> None:
    key_type = _Reader(found.public_key, where).string()
    line = key_type + b" " + base64.b64encode(found.public_key)
    key = load_ssh_public_key(line)
    if isinstance(key, ed25519.Ed25519PublicKey) and found.algorithm == key_type == b"ssh-ed25519":
        key.verify(found.value, data)
    elif isinstance(key, rsa.RSAPublicKey) and key_type == b"ssh-rsa" and found.algorithm in _RSA:
        if key.key_size < MIN_RSA_BITS:
            _bad(f"its RSA key has {key.key_size} bits; {MIN_RSA_BITS} are needed", where)
        key.verify(found.value, data, padding.PKCS1v15(), _RSA[found.algorithm]())
    elif isinstance(key, ec.EllipticCurvePublicKey) and found.algorithm == key_type in _CURVES:
        curve, hash_type = _CURVES[found.algorithm]
        if not isinstance(key.curve, curve):
            _bad("its key is on another curve than it says", where)
        numbers = _Reader(found.value, where)
        r, s = numbers.integer(), numbers.integer()
        numbers.end()
        key.verify(utils.encode_dss_signature(r, s), data, ec.ECDSA(hash_type()))
    else:
        kind = f"{found.algorithm!r:.40} by a key of type {key_type!r:.40}"
        _bad(f"uses {kind}; ssh-ed25519, rsa-sha2-256, rsa-sha2-512 and ecdsa-sha2-nistp* are known", where)


def _signed(message: bytes, namespace: bytes) -> bytes:
    return (
        MAGIC + _string(namespace) + _string(b"") + _string(HASH) + _string(hashlib.sha512(message).digest())
    )


def _armor(blob: bytes) -> bytes:
    text = base64.b64encode(blob)
    lines = (text[i : i + COLUMNS] + b"\n" for i in range(0, len(text), COLUMNS))
    return BEGIN + b"".join(lines) + END


def _string(value: bytes) -> bytes:
    return len(value).to_bytes(4, "big") + value


def _bad(what: str, where: str) -> NoReturn:
    raise BadSignature(f"the signature {what}", where=where)


@dataclass(slots=True)
class _Reader:
    """SSH's wire types, read from hostile bytes."""

    data: bytes
    where: str
    at: int = 0

    def take(self, size: int) -> bytes:
        piece = self.data[self.at : self.at + size]
        if len(piece) != size:
            _bad("is cut off", self.where)
        self.at += size
        return piece

    def number(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def string(self) -> bytes:
        return self.take(self.number())

    def integer(self) -> int:
        """A positive mpint in its one shortest form."""
        raw = self.string()
        value = int.from_bytes(raw, "big", signed=True)
        if value <= 0 or raw != value.to_bytes(value.bit_length() // 8 + 1, "big"):
            _bad("holds a number that is not a positive mpint", self.where)
        return value

    def end(self) -> None:
        if self.at != len(self.data):
            _bad("has bytes after its end", self.where)


def wire_of(line: str, *, where: str) -> bytes:
    """The wire form of a public key line (`type base64 [comment]`). Raises BadSignature if it is none."""
    parts = line.split()
    try:
        blob = base64.b64decode(parts[1], validate=True)
        load_ssh_public_key(f"{parts[0]} {parts[1]}".encode())
    except (IndexError, ValueError, UnsupportedAlgorithm):
        raise BadSignature("is not an OpenSSH public key", where=where) from None
    return blob
