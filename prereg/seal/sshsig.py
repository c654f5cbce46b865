"""OpenSSH signatures (SSHSIG), so that `ssh-keygen -Y` signs and checks the same files.

The format is OpenSSH's PROTOCOL.sshsig: a blob that carries the public key, a namespace and a signature over
the namespace and the SHA-512 of the message, in 70-column base64 between two marker lines. Only one spelling
of that armor is accepted: no byte of a signature file can be changed and leave it valid.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils
from cryptography.hazmat.primitives.serialization import load_ssh_public_key

from prereg.errors import VerificationFailed
from prereg.seal import sshsk
from prereg.seal.sshwire import Cut, Reader, string

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
KEY_TYPES = frozenset({b"ssh-ed25519", b"ssh-rsa", *_CURVES, *sshsk.TYPES})
"""The kinds of keys whose signatures are known."""
ANOTHER = "another key: ssh-keygen -t ed25519 -f FILE makes one"


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
    flags: int = 0
    """What a hardware token says of how it signed; 0 for other keys."""
    counter: int = 0
    """How often a token has signed, as it says itself."""


def fingerprint(public_key: bytes) -> str:
    """OpenSSH's name of a key: `SHA256:` and the unpadded base64 of its wire form's digest."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(public_key).digest()).decode().rstrip("=")


def sign(signer: Callable[[bytes], bytes], public_key: bytes, message: bytes, *, namespace: str) -> bytes:
    """The armored signature of `message`.

    `signer` signs the bytes that it is given and returns algorithm and value in SSH's wire form.
    """
    name = namespace.encode()
    value = signer(_signed(message, name))
    blob = MAGIC + VERSION.to_bytes(4, "big")
    blob += string(public_key) + string(name) + string(b"") + string(HASH) + string(value)
    return _armor(blob)


def normalised(armored: bytes, *, where: str) -> bytes:
    """A signature of another program in the one armor that is accepted: lines of 70, one newline at the end.

    Raises BadSignature if it is none.
    """
    text = b"".join(armored.split())
    begin, end = (b"".join(marker.split()) for marker in (BEGIN, END))
    if not text.startswith(begin) or not text.endswith(end):
        _bad("has no SSH SIGNATURE lines", where)
    try:
        return _armor(base64.b64decode(text[len(begin) : -len(end)], validate=True))
    except binascii.Error:
        _bad("is not base64", where)


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
    try:
        return _parse_blob(blob, where)
    except Cut as error:
        _bad(str(error), where)


def _parse_blob(blob: bytes, where: str) -> SshSignature:
    reader = Reader(blob)
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
    inner = Reader(signature)
    algorithm, value = inner.string(), inner.string()
    flags = counter = 0
    if algorithm in sshsk.TYPES:
        flags, counter = inner.take(1)[0], inner.number()
    inner.end()
    try:
        name = namespace.decode("ascii")
    except UnicodeDecodeError:
        _bad("its namespace is not ASCII", where)
    return SshSignature(
        public_key=public_key, namespace=name, algorithm=algorithm, value=value, flags=flags, counter=counter
    )


def verify(armored: bytes, message: bytes, *, namespace: str, where: str) -> SshSignature:
    """Check that `armored` signs `message` in `namespace`; the key in it is still to be trusted.

    Raises BadSignature otherwise. Ed25519, RSA (2048 bits and more, SHA-2) and the NIST curves are known, and
    hardware tokens' Ed25519 and P-256, if somebody touched the token.
    """
    found = parse(armored, where=where)
    if found.namespace != namespace:
        _bad(f"is for namespace {found.namespace!r:.80}, not {namespace!r}", where)
    try:
        _verify_value(found, _signed(message, namespace.encode()), where)
    except InvalidSignature:
        _bad("does not match the signed bytes", where)
    except Cut as error:
        _bad(str(error), where)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        _bad(f"its key or value cannot be read: {error}", where)
    return found


def _verify_value(found: SshSignature, data: bytes, where: str) -> None:
    key_type = Reader(found.public_key).string()
    if key_type in sshsk.TYPES and found.algorithm == key_type:
        if not found.flags & sshsk.TOUCHED:
            _bad("was made by a hardware token that nobody touched", where)
        sshsk.verify(found.public_key, found.value, data, flags=found.flags, counter=found.counter)
        return
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
        numbers = Reader(found.value)
        r, s = numbers.integer(), numbers.integer()
        numbers.end()
        key.verify(utils.encode_dss_signature(r, s), data, ec.ECDSA(hash_type()))
    else:
        kind = f"{found.algorithm!r:.40} by a key of type {key_type!r:.40}"
        known = "ssh-ed25519, rsa-sha2-256, rsa-sha2-512, ecdsa-sha2-nistp* and two kinds of hardware tokens"
        _bad(f"uses {kind}; {known} are known", where)


def _signed(message: bytes, namespace: bytes) -> bytes:
    return MAGIC + string(namespace) + string(b"") + string(HASH) + string(hashlib.sha512(message).digest())


def _armor(blob: bytes) -> bytes:
    text = base64.b64encode(blob)
    lines = (text[i : i + COLUMNS] + b"\n" for i in range(0, len(text), COLUMNS))
    return BEGIN + b"".join(lines) + END


def _bad(what: str, where: str) -> NoReturn:
    raise BadSignature(f"the signature {what}", where=where)


def line_of(public_key: bytes) -> str:
    """The public key line (`type base64`) of a wire form. Raises Cut if it has no type."""
    return f"{Reader(public_key).string().decode('ascii', 'replace')} {base64.b64encode(public_key).decode()}"


def wire_of(line: str, *, where: str) -> bytes:
    """The wire form of a public key line (`type base64 [comment]`).

    Raises BadSignature, with what to do instead, if it is none, or a key whose signatures never count:
    of another kind than KEY_TYPES, a certificate, or RSA of too few bits.
    """
    parts = re.split("[ \t]+", line.strip(" \t\r\n"))
    try:
        blob = base64.b64decode(parts[1], validate=True)
        if base64.b64encode(blob).decode() != parts[1]:
            raise ValueError("another base64 than that of its bytes")
        kind = parts[0].encode()
        if Reader(blob).string() != kind:
            raise ValueError("another type than it says")
        if kind not in KEY_TYPES:
            what = f"is a key of type {parts[0][:40]}, and no signature of it counts"
            step = "name the plain .pub file that the certificate is for" if b"-cert-" in kind else ANOTHER
            raise BadSignature(what, where=where, next_step=step)
        if kind in sshsk.TYPES:
            sshsk.token_key(blob)
        else:
            key = load_ssh_public_key(f"{parts[0]} {parts[1]}".encode())
            if isinstance(key, rsa.RSAPublicKey) and key.key_size < MIN_RSA_BITS:
                what = f"is an RSA key of {key.key_size} bits; {MIN_RSA_BITS} are needed"
                raise BadSignature(what, where=where, next_step=ANOTHER)
    # A point that is compressed is not implemented, says the library.
    except (IndexError, ValueError, NotImplementedError, Cut, UnsupportedAlgorithm):
        raise BadSignature("is not an OpenSSH public key", where=where) from None
    return blob
