"""Signing keys: an Ed25519 file, any other file that ssh-keygen signs with, or a key of an ssh-agent.

Any other file is one behind a passphrase too, or one whose key a hardware token holds.

Whatever makes a signature, it is checked here before it is used, and written in the one form that section 3
of docs/formats.md asks for.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
    load_ssh_public_key,
)

from prereg.errors import UsageError
from prereg.seal import agent, keygen, sshsig, sshsk, sshwire
from prereg.seal.sshwire import string

MAX_KEY_FILE = 65_536
_PUBLIC = (b"ssh-", b"ecdsa-", b"sk-")


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """A key that signs; its private half is never printed."""

    public_key: bytes
    """The public key in OpenSSH's wire form."""
    public_line: str
    """`ssh-ed25519 AAAA…`, as it stands in allowed_signers."""
    name: str
    """Where the key is, for messages."""
    _make: Callable[[bytes, str], bytes] = field(repr=False)
    """The armored signature of a message in a namespace."""

    @property
    def fingerprint(self) -> str:
        return sshsig.fingerprint(self.public_key)

    def sign(self, message: bytes, *, namespace: str) -> bytes:
        """The armored OpenSSH signature of `message`.

        Raises BadSignature if what was made does not verify or is by another key, and UsageError or
        EvidenceIncomplete if nothing was made.
        """
        armored = self._make(message, namespace)
        found = sshsig.verify(armored, message, namespace=namespace, where=self.name)
        if found.public_key != self.public_key:
            raise sshsig.BadSignature("the signature is by another key", where=self.name)
        return armored


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
    key = _in_memory(private, str(path))
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    text = private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    _write_new(path, text, 0o600)
    _write_new(public, key.public_line.encode() + b"\n", 0o644)
    return key


def load_key(key: Path | str) -> SigningKey:
    """The key that `--key` names: a private key file, a public one whose private half the ssh-agent holds, or
    `agent:SHA256:…`.

    The file of a hardware token's key holds a handle; the token signs. Nobody is asked for anything before
    something is to be signed. Raises UsageError if the key is missing, readable by others, or of a kind that
    this program cannot verify.
    """
    if str(key).startswith(agent.PREFIX):
        return _by_agent(str(key).removeprefix(agent.PREFIX), str(key))
    path = Path(key).expanduser()
    data, mode = _read(path)
    if data.startswith(_PUBLIC):
        return _by_public_file(path, data)
    if mode & 0o077:
        if b"PRIVATE KEY" not in data:
            raise UsageError(
                "is not a private key that OpenSSH can use", where=str(path), next_step=keygen.NEW
            )
        raise UsageError(
            f"has mode {stat.S_IMODE(mode):04o}: others can read the key",
            where=str(path),
            next_step=f"chmod 600 {path}",
        )
    try:
        private = load_ssh_private_key(data, password=None)
    except (TypeError, ValueError, UnsupportedAlgorithm):
        # Behind a passphrase, in PEM, on a hardware token, or of a kind that only OpenSSH knows.
        return _by_keygen(path, data)
    if isinstance(private, Ed25519PrivateKey):
        return _in_memory(private, str(path))
    return _by_keygen(path, data)


def read_public(path: Path) -> str:
    """The public key line of a .pub file, without its comment. Raises UsageError if it holds none."""
    data, _ = _read(path.expanduser())
    line = " ".join(data.decode("utf-8", "replace").split()[:2])
    try:
        sshsig.wire_of(line, where=str(path))
    except sshsig.BadSignature as error:
        step = error.next_step or "name the file that ends in .pub"
        raise UsageError(error.what, where=str(path), next_step=step) from None
    return line


_A_FILE = "name a key file of yours, or prereg key new FILE --principal NAME --role ROLE"


def _read(path: Path) -> tuple[bytes, int]:
    try:
        with path.open("rb") as handle:
            mode = os.fstat(handle.fileno()).st_mode
            data = handle.read(MAX_KEY_FILE + 1)
    except FileNotFoundError:
        raise UsageError(
            "there is no such key", where=str(path), next_step=f"prereg key new {path}"
        ) from None
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        raise UsageError(what, where=str(path), next_step=_A_FILE) from None
    if not stat.S_ISREG(mode):
        raise UsageError("is not a regular file", where=str(path), next_step=_A_FILE)
    return data, mode


def _in_memory(private: Ed25519PrivateKey, name: str) -> SigningKey:
    line = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    wire = sshsig.wire_of(line, where="key")

    def make(message: bytes, namespace: str) -> bytes:
        def signer(data: bytes) -> bytes:
            return string(b"ssh-ed25519") + string(private.sign(data))

        return sshsig.sign(signer, wire, message, namespace=namespace)

    return SigningKey(public_key=wire, public_line=line, name=name, _make=make)


def _by_public_file(path: Path, data: bytes) -> SigningKey:
    line = read_public(path)
    name = sshsig.fingerprint(sshsig.wire_of(line, where=str(path)))
    try:
        return _by_agent(name, str(path))
    except UsageError as error:
        private = str(path).removesuffix(".pub")
        raise UsageError(
            f"is a public key, and signing needs the private one; {error.what}",
            where=str(path),
            next_step=f"use {private}" if Path(private).exists() else "ssh-add, with the private key",
        ) from None


def _by_agent(fingerprint: str, name: str) -> SigningKey:
    for held in agent.agent_keys():
        if sshsig.fingerprint(held.public_key) == fingerprint:
            wire = held.public_key
            break
    else:
        raise UsageError(f"the ssh-agent has no key {fingerprint}", where=name, next_step="ssh-add -l")

    def make(message: bytes, namespace: str) -> bytes:
        return sshsig.sign(lambda data: agent.agent_sign(wire, data), wire, message, namespace=namespace)

    line = sshsig.line_of(wire)
    _refuse_kind(line, name)
    return SigningKey(public_key=wire, public_line=line, name=name, _make=make)


def _by_keygen(path: Path, data: bytes) -> SigningKey:
    """A key file that ssh-keygen can use, and this program only through it."""
    line = _public_half(path, data)
    _refuse_kind(line, str(path))
    wire = sshsig.wire_of(line, where=str(path))
    token = sshsk.is_token(wire)

    def make(message: bytes, namespace: str) -> bytes:
        return keygen.sign(path, message, namespace, token=token)

    return SigningKey(public_key=wire, public_line=line, name=str(path), _make=make)


def _public_half(path: Path, data: bytes) -> str:
    """The public line of a private key file, without asking anybody for a passphrase.

    Behind a passphrase OpenSSH's own form has it in the clear; of another form it must lie beside. It is what
    a signature is held against, so one that belongs to another key signs nothing.
    """
    if (found := keygen.public_line(path)) is not None:
        return found
    if (wire := sshwire.public_of_private(data)) is not None:
        return sshsig.line_of(wire)
    beside = path.with_name(path.name + ".pub")
    if beside.is_file():
        return read_public(beside)
    raise UsageError(
        "is protected by a passphrase, and its public half does not lie beside it",
        where=str(path),
        next_step=f"ssh-keygen -y -f {path} > {beside}",
    )


def _refuse_kind(line: str, where: str) -> None:
    """Raise UsageError for a key whose signatures nobody would accept."""
    kind = line.split(" ")[0].encode()
    if kind not in sshsig.KEY_TYPES:
        known = ", ".join(sorted(name.decode() for name in sshsig.KEY_TYPES))
        raise UsageError(
            f"is a key of type {kind.decode()}; signatures by {known} are known",
            where=where,
            next_step=keygen.NEW,
        )
    public = None if kind in sshsk.TYPES else load_ssh_public_key(line.encode())
    if isinstance(public, RSAPublicKey) and public.key_size < sshsig.MIN_RSA_BITS:
        raise UsageError(
            f"is an RSA key of {public.key_size} bits; {sshsig.MIN_RSA_BITS} are needed",
            where=where,
            next_step=keygen.NEW,
        )


def _write_new(path: Path, data: bytes, mode: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with os.fdopen(fd, "wb") as handle:
        os.fchmod(handle.fileno(), mode)
        handle.write(data)
        handle.flush()
        os.fsync(handle.fileno())
