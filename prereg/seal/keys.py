"""Signing keys: an Ed25519 file, any other file that ssh-keygen signs with, or a key of an ssh-agent.

Whatever makes a signature, it is checked here before it is used, and written in the one form that section 3
of docs/formats.md asks for.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
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
from prereg.seal import agent, sshsig
from prereg.seal.sshwire import string

MAX_KEY_FILE = 65_536
KEYGEN_SECONDS = 60
"""Longest time that ssh-keygen gets: it asks nobody anything."""
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

    Raises UsageError if it is missing, readable by others, protected by a passphrase, or of a kind that this
    program cannot verify.
    """
    if str(key).startswith(agent.PREFIX):
        return _by_agent(str(key).removeprefix(agent.PREFIX), str(key))
    path = Path(key).expanduser()
    data, mode = _read(path)
    if data.startswith(_PUBLIC):
        return _by_public_file(path, data)
    if mode & 0o077:
        if b"PRIVATE KEY" not in data:
            raise UsageError("is not a private key that OpenSSH can use", where=str(path), next_step=_NEW)
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
            next_step=f"ssh-add {path}, then --key {path}.pub",
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        # PEM, or a kind that only OpenSSH knows.
        return _by_keygen(path)
    return _in_memory(private, str(path)) if isinstance(private, Ed25519PrivateKey) else _by_keygen(path)


def read_public(path: Path) -> str:
    """The public key line of a .pub file, without its comment. Raises UsageError if it holds none."""
    data, _ = _read(path.expanduser())
    line = " ".join(data.decode("utf-8", "replace").split()[:2])
    try:
        sshsig.wire_of(line, where=str(path))
    except sshsig.BadSignature as error:
        raise UsageError(error.what, where=str(path), next_step="name the file that ends in .pub") from None
    return line


_NEW = "prereg key new PATH, or ssh-keygen -t ed25519 -N ''"


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
        raise UsageError(f"cannot be read: {error.strerror}", where=str(path)) from None
    if not stat.S_ISREG(mode):
        raise UsageError("is not a regular file", where=str(path))
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


def _by_keygen(path: Path) -> SigningKey:
    """A key file that ssh-keygen can use, and this program only through it."""
    done = _keygen(["-y", "-P", "", "-f", str(path)], b"", str(path))
    line = " ".join(done.stdout.decode("utf-8", "replace").split()[:2])
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        if any("passphrase" in text for text in said):
            raise UsageError(
                "is protected by a passphrase, which cannot be asked for here",
                where=str(path),
                next_step=f"ssh-add {path}, then --key {path}.pub",
            )
        raise UsageError("is not a private key that OpenSSH can use", where=str(path), next_step=_NEW)
    _refuse_kind(line, str(path))

    def make(message: bytes, namespace: str) -> bytes:
        made = _keygen(["-q", "-Y", "sign", "-f", str(path), "-n", namespace], message, str(path))
        if made.returncode != 0:
            said = made.stderr.decode("utf-8", "replace").strip().splitlines()
            raise UsageError(
                f"ssh-keygen does not sign with it: {said[-1][:120] if said else made.returncode}",
                where=str(path),
                next_step=_NEW,
            )
        return sshsig.normalised(made.stdout, where=str(path))

    wire = sshsig.wire_of(line, where=str(path))
    return SigningKey(public_key=wire, public_line=line, name=str(path), _make=make)


def _keygen(arguments: list[str], stdin: bytes, where: str) -> subprocess.CompletedProcess[bytes]:
    """Run ssh-keygen where it can ask nobody: no terminal, no helper that asks for a passphrase."""
    program = shutil.which("ssh-keygen")
    if program is None:
        raise UsageError(
            "only ssh-keygen can use this key, and OpenSSH is not installed",
            where=where,
            next_step="install openssh-client, or prereg key new",
        )
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "SSH_ASKPASS")}
    try:
        return subprocess.run(
            [program, *arguments],
            input=stdin,
            capture_output=True,
            timeout=KEYGEN_SECONDS,
            env={**environment, "SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C"},
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"ssh-keygen took over {KEYGEN_SECONDS} s", where=where, next_step=_NEW) from None


def _refuse_kind(line: str, where: str) -> None:
    """Raise UsageError for a key whose signatures nobody would accept."""
    kind = line.split(" ")[0].encode()
    if kind not in sshsig.KEY_TYPES:
        known = ", ".join(sorted(name.decode() for name in sshsig.KEY_TYPES))
        raise UsageError(
            f"is a key of type {kind.decode()}; signatures by {known} are known", where=where, next_step=_NEW
        )
    public = load_ssh_public_key(line.encode())
    if isinstance(public, RSAPublicKey) and public.key_size < sshsig.MIN_RSA_BITS:
        raise UsageError(
            f"is an RSA key of {public.key_size} bits; {sshsig.MIN_RSA_BITS} are needed",
            where=where,
            next_step=_NEW,
        )


def _write_new(path: Path, data: bytes, mode: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with os.fdopen(fd, "wb") as handle:
        os.fchmod(handle.fileno(), mode)
        handle.write(data)
        handle.flush()
        os.fsync(handle.fileno())
