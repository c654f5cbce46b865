"""Signing keys: Ed25519 in OpenSSH's own file format, so that ssh-keygen can use them too."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
)

from prereg.errors import UsageError
from prereg.seal import sshsig

MAX_KEY_FILE = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """A private key in memory; it is never printed."""

    public_key: bytes
    """The public key in OpenSSH's wire form."""
    public_line: str
    """`ssh-ed25519 AAAA…`, as it stands in allowed_signers."""
    _private: Ed25519PrivateKey = field(repr=False)

    @property
    def fingerprint(self) -> str:
        return sshsig.fingerprint(self.public_key)

    def sign(self, message: bytes, *, namespace: str) -> bytes:
        """The armored OpenSSH signature of `message`."""
        return sshsig.sign(self._private, self.public_key, message, namespace=namespace)


def generate_key(path: Path, *, force: bool = False) -> SigningKey:
    """Make a key at `path` (mode 0600) and its public line at `path.pub`.

    Raises UsageError if either file exists, or if `path` lies in a git repository (unless `force`: a private
    key in a repository is soon a public one).
    """
    path = path.expanduser().absolute()
    public = path.with_name(path.name + ".pub")
    repository = next((p for p in path.resolve().parents if (p / ".git").exists()), None)
    if repository is not None and not force:
        raise UsageError(
            f"a private key does not belong in the repository {repository}",
            where=str(path),
            next_step="prereg key new ~/.config/prereg/key",
        )
    for file in (path, public):
        if os.path.lexists(file):
            raise UsageError(
                "exists already; a key is never overwritten", where=str(file), next_step="choose another path"
            )
    private = Ed25519PrivateKey.generate()
    key = _signing_key(private)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    text = private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    _write_new(path, text, 0o600)
    _write_new(public, key.public_line.encode() + b"\n", 0o644)
    return key


def load_key(path: Path) -> SigningKey:
    """Read a private key.

    Raises UsageError if it is missing, readable by others, protected by a passphrase, or not Ed25519.
    """
    path = path.expanduser()
    try:
        with path.open("rb") as handle:
            mode = os.fstat(handle.fileno()).st_mode
            data = handle.read(MAX_KEY_FILE + 1)
    except FileNotFoundError:
        raise UsageError(
            "there is no such key", where=str(path), next_step=f"prereg key new {path}"
        ) from None
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(path)) from None
    if not stat.S_ISREG(mode):
        raise UsageError("is not a regular file", where=str(path))
    if data.startswith((b"ssh-", b"ecdsa-", b"sk-")):
        raise UsageError(
            "is a public key; signing needs the private one",
            where=str(path),
            next_step=f"use {str(path).removesuffix('.pub')}",
        )
    if mode & 0o077:
        raise UsageError(
            f"has mode {stat.S_IMODE(mode):04o}: others can read the key",
            where=str(path),
            next_step=f"chmod 600 {path}",
        )
    try:
        private = load_ssh_private_key(data, password=None)
    except TypeError:
        raise UsageError(
            "is protected by a passphrase, which cannot be asked for here",
            where=str(path),
            next_step=f"ssh-keygen -p -N '' -f {path}, on a copy",
        ) from None
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UsageError(
            f"is not an OpenSSH private key: {str(error)[:120]}", where=str(path), next_step=_NEW
        ) from None
    if not isinstance(private, Ed25519PrivateKey):
        kind = type(private).__name__.lstrip("_").removesuffix("PrivateKey")
        raise UsageError(f"is a key of type {kind}; signing uses Ed25519", where=str(path), next_step=_NEW)
    return _signing_key(private)


_NEW = "prereg key new PATH, or ssh-keygen -t ed25519 -N ''"


def _signing_key(private: Ed25519PrivateKey) -> SigningKey:
    line = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return SigningKey(public_key=sshsig.wire_of(line, where="key"), public_line=line, _private=private)


def _write_new(path: Path, data: bytes, mode: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with os.fdopen(fd, "wb") as handle:
        os.fchmod(handle.fileno(), mode)
        handle.write(data)
        handle.flush()
        os.fsync(handle.fileno())
