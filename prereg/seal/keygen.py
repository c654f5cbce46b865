"""Signing through ssh-keygen: keys that this program cannot use itself, behind a passphrase or on a token.

ssh-keygen asks for a passphrase or a PIN on the terminal, or through SSH_ASKPASS, and says when a token waits
to be touched. It is given a file to sign, not a pipe: what it reads from must not be what it is asked on.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prereg.errors import PreregError, UsageError, WrongState
from prereg.seal import sshsig

SECONDS = 60
"""Longest time that ssh-keygen gets where it asks nobody anything."""
ASKED_SECONDS = 300
"""Longest time that somebody gets to find a token and touch it, or to type a passphrase."""
GRACE_SECONDS = 5.0
"""How long ssh-keygen gets to leave the terminal as it was."""
NEW = "prereg key new FILE --principal NAME --role ROLE; or ssh-keygen -t ed25519 -N ''"
_MAX_SAID = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How ssh-keygen ended."""

    code: int
    out: bytes
    said: str
    """Its last line on stderr."""
    everything: str


def public_line(path: Path) -> str | None:
    """The public line of a private key file that needs no passphrase, by ssh-keygen; None if it needs one.

    Raises UsageError for what is no private key.
    """
    done = _quietly(["-y", "-P", "", "-f", str(path)], str(path))
    if done.code == 0:
        return " ".join(done.out.decode("utf-8", "replace").split()[:2])
    if "passphrase" in done.everything:
        return None
    raise UsageError("is not a private key that OpenSSH can use", where=str(path), next_step=NEW)


def sign(path: Path, message: bytes, namespace: str, *, token: bool, seconds: float = ASKED_SECONDS) -> bytes:
    """The armored signature that ssh-keygen makes of `message` with the key file at `path`.

    Its owner may be asked for a passphrase, a PIN or a touch (`token`). Raises UsageError if ssh-keygen is
    missing or does not sign, and WrongState if nobody answers in time.
    """
    with tempfile.TemporaryDirectory(prefix="prereg-sign-") as folder:
        file = Path(folder) / "message"
        file.write_bytes(message)
        arguments = ["-q", "-Y", "sign", "-f", str(path.absolute()), "-n", namespace, str(file)]
        done = _asking(arguments, str(path), seconds, token=token)
        if done.code != 0:
            raise _refusal(done, path, token=token)
        return sshsig.normalised((Path(folder) / "message.sig").read_bytes(), where=str(path))


def _quietly(arguments: list[str], where: str) -> Ended:
    """Run ssh-keygen where it can ask nobody: no terminal, no program that asks for a passphrase."""
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "SSH_ASKPASS")}
    try:
        done = subprocess.run(
            [_program(where), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            env={**environment, "SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C"},
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"ssh-keygen took over {SECONDS} s", where=where, next_step=NEW) from None
    return _ended(done.returncode, done.stdout, done.stderr)


def _asking(arguments: list[str], where: str, seconds: float, *, token: bool) -> Ended:
    """Run ssh-keygen on the terminal of whoever runs this; what it says on stderr is shown, and kept."""
    environment = {**os.environ, "LC_ALL": "C"}
    with _terminal() as asked_on:
        if asked_on == subprocess.DEVNULL and "SSH_ASKPASS" in environment:
            environment.setdefault("SSH_ASKPASS_REQUIRE", "force")
        process = subprocess.Popen(
            [_program(where), *arguments],
            stdin=asked_on,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
        )
    said = bytearray()
    shown = threading.Thread(target=_show, args=(process, said), daemon=True)
    shown.start()
    try:
        code = process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        what = "nobody touched the hardware token" if token else "nobody gave the passphrase"
        raise WrongState(
            f"{what} within {seconds:g} s", where=where, next_step="run the same command once more"
        ) from None
    finally:
        _end(process)
        # A program that asks for a passphrase may outlive it, and hold its stderr.
        shown.join(timeout=1.0)
    return _ended(code, b"", bytes(said))


@contextlib.contextmanager
def _terminal() -> Iterator[int]:
    """The terminal of this process, whatever its input is; the null device where there is none.

    With another input than a terminal ssh-keygen would prefer SSH_ASKPASS, also where it does not exist.
    """
    try:
        fd = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        yield subprocess.DEVNULL
        return
    try:
        yield fd
    finally:
        os.close(fd)


def _show(process: subprocess.Popen[bytes], said: bytearray) -> None:
    """Copy what ssh-keygen says, as it says it."""
    assert process.stderr is not None
    with process.stderr, contextlib.suppress(OSError, ValueError):
        while piece := os.read(process.stderr.fileno(), 1024):
            said += piece[: _MAX_SAID - len(said)]
            sys.stderr.write(piece.decode("utf-8", "replace"))
            sys.stderr.flush()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop ssh-keygen: first so that it can switch the terminal's echo on again."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(timeout=GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _refusal(done: Ended, path: Path, *, token: bool) -> PreregError:
    """What it means that ssh-keygen made no signature."""
    where, said = str(path), done.everything
    if "device not found" in said:
        return UsageError(
            "no hardware token that holds this key is there",
            where=where,
            next_step="plug it in and run this once more; SSH_SK_PROVIDER names the library of another kind",
        )
    if "FIDO library" in said or "provider" in said:
        return UsageError(
            f"ssh-keygen cannot talk to the token: {done.said}",
            where="SSH_SK_PROVIDER",
            next_step="unset SSH_SK_PROVIDER, or name the library that drives the token",
        )
    if "passphrase" in said or "bad decrypt" in said:
        return UsageError(
            "is protected by a passphrase, and the right one was not given",
            where=where,
            next_step=f"run this on a terminal; or ssh-add {path}, then --key {path}.pub",
        )
    if "Couldn't load public key" in said:
        return UsageError(
            "is protected by a passphrase, and its public half does not lie beside it",
            where=where,
            next_step=f"ssh-keygen -y -f {path} > {path}.pub",
        )
    what = "the hardware token does not sign" if token else "ssh-keygen does not sign with it"
    return UsageError(f"{what}: {done.said or done.code}", where=where, next_step=NEW if not token else None)


def _ended(code: int, out: bytes, err: bytes) -> Ended:
    text = err.decode("utf-8", "replace")
    # The line that names our own temporary file says nothing to anybody.
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("Signing ")]
    return Ended(code=code, out=out, said=lines[-1][:120] if lines else "", everything=text)


def _program(where: str) -> str:
    program = shutil.which("ssh-keygen")
    if program is None:
        raise UsageError(
            "only ssh-keygen can use this key, and OpenSSH is not installed",
            where=where,
            next_step="apt install openssh-client; or prereg key new FILE --principal NAME --role ROLE",
        )
    return program
