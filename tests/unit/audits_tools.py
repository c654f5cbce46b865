"""What a study is made of besides JSON: digests, moments, keys, signatures, gzip members, git."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from audits_slow import canon

ROOT = Path(__file__).resolve().parents[2]


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def machine(value: Any) -> bytes:
    return canon(value) + b"\n"


def clock() -> Callable[[], str]:
    """Moments, one second apart."""
    ticks = iter(range(100_000))

    def now() -> str:
        n = next(ticks)
        return f"2026-11-29T{10 + n // 3600:02d}:{n // 60 % 60:02d}:{n % 60:02d}.000001+00:00"

    return now


def run(*command: str, cwd: Path | None = None, feed: bytes | None = None) -> bytes:
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_GLOBAL": "/dev/null"}
    env |= {
        f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    return subprocess.run(command, cwd=cwd, input=feed, env=env, check=True, capture_output=True).stdout


def make_key(folder: Path, name: str, kind: str = "ed25519") -> Path:
    path = folder / name
    run("ssh-keygen", "-q", "-t", kind, "-N", "", "-C", name, "-f", str(path))
    return path


def sign(key: Path, data: bytes, namespace: str) -> bytes:
    return run("ssh-keygen", "-q", "-Y", "sign", "-f", str(key), "-n", namespace, feed=data)


def public(key: Path) -> str:
    return " ".join(key.with_name(key.name + ".pub").read_text().split()[:2])


def fingerprint(key: Path) -> str:
    return run("ssh-keygen", "-lf", str(key) + ".pub").decode().split()[1]


def pack(lines: bytes, level: int = 6, mtime: int = 0) -> bytes:
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, compresslevel=level, mtime=mtime) as member:
        member.write(lines)
    return buffer.getvalue()
