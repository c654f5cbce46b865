"""OpenSSH signatures (SSHSIG): parse the armor, verify with a public key of its own."""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from audits.fault import Fault

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

_BEGIN = b"-----BEGIN SSH SIGNATURE-----"
_END = b"-----END SSH SIGNATURE-----"
_MAGIC = b"SSHSIG"
_CURVES = {b"ecdsa-sha2-nistp256": 256, b"ecdsa-sha2-nistp384": 384, b"ecdsa-sha2-nistp521": 521}
_HARDWARE = {
    b"sk-ssh-ed25519@openssh.com": b"ssh-ed25519",
    b"sk-ecdsa-sha2-nistp256@openssh.com": b"ecdsa-sha2-nistp256",
}
"""The keys of hardware tokens, and the type of key that each is but for its application."""
_UNCOMPRESSED = b"\x04"
"""How the one encoding of a point begins; a key with another would be one key under two fingerprints."""
_TOUCHED = 0x01
"""The flag that somebody touched the token."""
_SHORTEST = 2048
"""The fewest bits of an RSA key."""
_FLAGS, _COUNTER = 1, 4
"""Bytes of what a token adds to a signature."""
KEY_TYPES = frozenset(
    {"ssh-ed25519", "ssh-rsa", *(name.decode() for name in _CURVES), *(name.decode() for name in _HARDWARE)}
)
"""The key types a line of trust may name."""


class SignatureFault(Fault):
    """A signature that is malformed or does not verify."""


class _Reader:
    """Reads SSH wire strings, and nothing past the end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        if count > len(self._data) - self._at:
            raise SignatureFault("an SSH structure is cut short")
        part = self._data[self._at : self._at + count]
        self._at += count
        return part

    def string(self) -> bytes:
        return self.take(int.from_bytes(self.take(4), "big"))

    def mpint(self) -> int:
        raw = self.string()
        if raw[:1] >= b"\x80" or (len(raw) > 1 and raw[0] == 0 and raw[1] < 0x80):
            raise SignatureFault("an SSH number is negative or padded")
        return int.from_bytes(raw, "big")

    def end(self) -> None:
        if self._at != len(self._data):
            raise SignatureFault("bytes after the end of an SSH structure")


def _string(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A parsed SSHSIG."""

    key: bytes
    """The signer's public key, in SSH wire form."""
    namespace: str
    raw: bytes
    """The signature proper: algorithm and bytes, in SSH wire form."""

    @property
    def fingerprint(self) -> str:
        """The signer's key as OpenSSH prints it."""
        return fingerprint(self.key)


def fingerprint(key: bytes) -> str:
    """``SHA256:`` and the unpadded base64 of the digest of a public key in wire form."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")


def _armored(blob: bytes) -> bytes:
    text = base64.b64encode(blob)
    lines = [text[at : at + 70] for at in range(0, len(text), 70)]
    return b"\n".join([_BEGIN, *lines, _END, b""])


def parse(data: bytes) -> Signature:
    """Parse an armored signature, byte for byte as OpenSSH writes it; the message's hash is ``sha512``."""
    lines = data.split(b"\n")
    if data.count(b"\r") or len(lines) < 4 or lines[0] != _BEGIN or lines[-2:] != [_END, b""]:
        raise SignatureFault("not an armored OpenSSH signature")
    try:
        blob = base64.b64decode(b"".join(lines[1:-2]), validate=True)
    except binascii.Error:
        raise SignatureFault("the armor is not base64") from None
    if data != _armored(blob):
        raise SignatureFault("the armor is not OpenSSH's: lines of 70 columns and one final newline")
    reader = _Reader(blob)
    if reader.take(6) != _MAGIC:
        raise SignatureFault("the blob is not an SSHSIG")
    if (version := int.from_bytes(reader.take(4), "big")) != 1:
        raise SignatureFault(f"SSHSIG version {version} is not known")
    key, namespace, reserved, algorithm, raw = (reader.string() for _ in range(5))
    reader.end()
    if reserved:
        raise SignatureFault("the reserved field is not empty")
    if algorithm != b"sha512":
        raise SignatureFault(f"the message's hash is {algorithm[:16]!r}, not sha512")
    try:
        return Signature(key=key, namespace=namespace.decode("ascii"), raw=raw)
    except UnicodeDecodeError:
        raise SignatureFault("the namespace is not ASCII") from None


def verify(message: bytes, signature: Signature, namespace: str) -> None:
    """Raise ``SignatureFault`` unless the signature is its key's, over this message in this namespace."""
    if signature.namespace != namespace:
        raise SignatureFault(f"the signature's namespace is {signature.namespace!r}, not {namespace!r}")
    hashed = hashlib.sha512(message).digest()
    signed = _MAGIC + _string(namespace.encode()) + _string(b"") + _string(b"sha512") + _string(hashed)
    raw = _Reader(signature.raw)
    algorithm, value = raw.string(), raw.string()
    key, application = plain_key(signature.key)
    if application is not None:
        kind = _Reader(signature.key).string()
        if algorithm != kind:
            raise SignatureFault(f"key type {kind!r} with algorithm {algorithm[:60]!r} is not supported")
        algorithm, signed = _HARDWARE[kind], _told(raw, application, signed)
    raw.end()
    if not _verify_raw(key, algorithm, value, signed):
        raise SignatureFault("the signature does not verify: the signed bytes or the signature were altered")


def plain_key(key: bytes) -> tuple[bytes, bytes | None]:
    """A key without what makes it a hardware token's, and its application; other keys as they are, and None.

    Raises ``SignatureFault`` for a key of a token with anything missing or left over (section 4).
    """
    reader = _Reader(key)
    plain = _HARDWARE.get(reader.string())
    if plain is None:
        return key, None
    parts = [plain, *(reader.string() for _ in range(2 if plain in _CURVES else 1))]
    application = reader.string()
    reader.end()
    return b"".join(map(_string, parts)), application


def _told(raw: _Reader, application: bytes, signed: bytes) -> bytes:
    """What a token signs (OpenSSH, PROTOCOL.u2f); its flags and counter follow the signature."""
    flags, counter = raw.take(_FLAGS), raw.take(_COUNTER)
    if not flags[0] & _TOUCHED:
        raise SignatureFault("nobody touched the token: the signature's flags do not have user presence")
    return hashlib.sha256(application).digest() + flags + counter + hashlib.sha256(signed).digest()


def check_key(key: bytes, kind: str) -> None:
    """Raise ``SignatureFault`` unless the bytes are exactly one key, and of this type (section 4)."""
    if _Reader(key).string() != kind.encode():
        raise SignatureFault("the key is not of the type it is said to be")
    from cryptography.exceptions import UnsupportedAlgorithm

    plain, _ = plain_key(key)
    name = _Reader(plain).string()
    try:
        if name == b"ssh-rsa":
            _rsa(plain)
        elif name in _CURVES:
            _ecdsa(plain)
        else:
            _ed25519(plain)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise SignatureFault(f"the public key cannot be used: {error}") from None


def _ed25519(key: bytes) -> Ed25519PublicKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    reader = _Reader(key)
    reader.string()
    point = reader.string()
    reader.end()
    return Ed25519PublicKey.from_public_bytes(point)  # of 32 bytes alone


def _rsa(key: bytes) -> tuple[int, int]:
    """The exponent and the modulus."""
    reader = _Reader(key)
    reader.string()
    exponent, modulus = reader.mpint(), reader.mpint()
    reader.end()
    if exponent < 1:
        raise SignatureFault("an RSA key whose exponent is not positive")
    if modulus.bit_length() < _SHORTEST:
        raise SignatureFault(f"an RSA key of fewer than {_SHORTEST} bits")
    return exponent, modulus


def _ecdsa(key: bytes) -> EllipticCurvePublicKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    reader = _Reader(key)
    bits = _CURVES[reader.string()]
    if reader.string() != f"nistp{bits}".encode():
        raise SignatureFault("an ECDSA key whose curve is not its type's")
    point = reader.string()
    reader.end()
    if point[:1] != _UNCOMPRESSED:
        raise SignatureFault("an ECDSA key whose point is not uncompressed, as OpenSSH has it")
    curve = {256: ec.SECP256R1(), 384: ec.SECP384R1()}.get(bits, ec.SECP521R1())
    return ec.EllipticCurvePublicKey.from_encoded_point(curve, point)


def _verify_raw(key: bytes, algorithm: bytes, value: bytes, signed: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
    from cryptography.hazmat.primitives.hashes import SHA256, SHA384, SHA512

    kind = _Reader(key).string()
    try:
        if kind == b"ssh-ed25519" and algorithm == kind:
            _ed25519(key).verify(value, signed)
        elif kind == b"ssh-rsa" and algorithm in (b"rsa-sha2-256", b"rsa-sha2-512"):
            short = algorithm == b"rsa-sha2-256"
            public = rsa.RSAPublicNumbers(*_rsa(key)).public_key()
            public.verify(value, signed, padding.PKCS1v15(), SHA256() if short else SHA512())
        elif kind in _CURVES and algorithm == kind:
            elliptic = _ecdsa(key)
            digest = {256: SHA256(), 384: SHA384()}.get(_CURVES[kind], SHA512())
            pair = _Reader(value)
            r, s = pair.mpint(), pair.mpint()
            pair.end()
            elliptic.verify(utils.encode_dss_signature(r, s), signed, ec.ECDSA(digest))
        else:
            raise SignatureFault(f"key type {kind[:40]!r} with algorithm {algorithm[:40]!r} is not supported")
    except InvalidSignature:
        return False
    except (ValueError, UnsupportedAlgorithm) as error:
        raise SignatureFault(f"the public key cannot be used: {error}") from None
    return True
