"""Signatures of hardware tokens: what a FIDO token signs in place of the message (OpenSSH, PROTOCOL.u2f).

A token signs SHA-256(application) ‖ flags ‖ counter ‖ SHA-256(what another key would sign). Flags and counter
follow the signature in its blob. Whether somebody touched the token is bit 0 of the flags. The form of
WebAuthn, in which a browser wraps the message, is another algorithm and not known here.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, utils

from prereg.seal.sshwire import Cut, Reader

ED25519 = b"sk-ssh-ed25519@openssh.com"
ECDSA = b"sk-ecdsa-sha2-nistp256@openssh.com"
TYPES = frozenset({ED25519, ECDSA})
"""The kinds of keys that tokens hold."""
TOUCHED = 1
"""The bit of the flags that says that somebody touched the token."""
_CURVE = b"nistp256"
_POINT = 65
"""Bytes of a point of that curve, not compressed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenKey:
    """The public half of a token's key."""

    key: ed25519.Ed25519PublicKey | ec.EllipticCurvePublicKey
    application: bytes
    """For whom the token made it: `ssh:` if nothing else was asked."""


def is_token(public_key: bytes) -> bool:
    """Whether a key in wire form is one of a token. Raises Cut if it has no type."""
    return Reader(public_key).string() in TYPES


def token_key(public_key: bytes) -> TokenKey:
    """Read a token's key from its wire form. Raises Cut or ValueError for anything else."""
    reader = Reader(public_key)
    kind = reader.string()
    key: ed25519.Ed25519PublicKey | ec.EllipticCurvePublicKey
    if kind == ED25519:
        key = ed25519.Ed25519PublicKey.from_public_bytes(reader.string())
    elif kind == ECDSA:
        if reader.string() != _CURVE:
            raise Cut("is a key on another curve than it says")
        point = reader.string()
        if len(point) != _POINT:
            raise Cut("has a point that is compressed or of another length")
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    else:
        raise Cut("is no key of a token")
    application = reader.string()
    reader.end()
    return TokenKey(key=key, application=application)


def verify(public_key: bytes, value: bytes, data: bytes, *, flags: int, counter: int) -> None:
    """Check a token's signature of `data`, that which another key would have signed.

    Raises InvalidSignature, or Cut or ValueError for a key or a value that cannot be read. Whether the token
    was touched is not asked here.
    """
    token = token_key(public_key)
    signed = hashlib.sha256(token.application).digest()
    signed += bytes([flags]) + counter.to_bytes(4, "big") + hashlib.sha256(data).digest()
    if isinstance(token.key, ed25519.Ed25519PublicKey):
        token.key.verify(value, signed)
        return
    numbers = Reader(value)
    r, s = numbers.integer(), numbers.integer()
    numbers.end()
    token.key.verify(utils.encode_dss_signature(r, s), signed, ec.ECDSA(hashes.SHA256()))
