"""OpenSSH's software token, from its regression tests, where it is installed (Debian: openssh-tests)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

TOKEN = Path("/usr/lib/openssh/regress/misc/sk-dummy/sk-dummy.so")
needs_token = pytest.mark.skipif(
    not TOKEN.exists() or shutil.which("ssh-keygen") is None,
    reason="OpenSSH's software token (sk-dummy.so of Debian's openssh-tests) is not installed",
)


def make_token_key(path: Path, kind: str = "ed25519-sk", *options: str, passphrase: str = "") -> Path:
    """A key that the software token holds; the file at `path` has its handle."""
    command = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "", "-f", str(path)]
    command += [word for option in options for word in ("-O", option)]
    environment = {**os.environ, "SSH_SK_PROVIDER": str(TOKEN)}
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, env=environment, capture_output=True)
    return path
