"""Running the installer: which one, one build at a time, its lines passed on, its failures shown."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from prereg.collect.progress import Progress, duration
from prereg.errors import EngineFailed, PreregError

_TAIL = 25
_TOLD = ("Collecting ", "Downloading ", "Installing ", "Successfully ", "Building wheel ")
"""Beginnings of the installer's lines that show how far it is; the rest is shown only when it fails."""

_STEP = re.compile(r"\[\d+/\d+\] |I: ")
"""How a compilation counts its steps, and how debootstrap begins its own. There are hundreds: one every few
seconds is told."""

EVERY = 10.0
"""Seconds between two such steps."""


@contextlib.contextmanager
def alone(path: Path, name: str, progress: Progress) -> Iterator[None]:
    """Hold the lock file at `path`, after waiting for whoever has it. A dead process holds nothing."""
    with path.open("ab") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.note(f"{name}: another build of it is running; waiting")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def pip_for(base: str, name: str) -> Sequence[str]:
    """A pip that installs into another environment, so that no pip becomes part of it."""
    for python in (base, sys.executable):
        done = subprocess.run(
            [python, "-m", "pip", "--python", python, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if done.returncode == 0:
            return (python, "-m", "pip")
    bundled = bundled_pip()
    if bundled is None:
        raise EngineFailed(f"no pip to install the build {name} with", next_step=f"{base} -m ensurepip")
    return (base, str(bundled / "pip"))


def bundled_pip() -> Path | None:
    """The wheel of pip that came with this Python, which runs as it is; None where it was taken out."""
    try:
        import ensurepip
    except ImportError:
        return None
    bundled = sorted(Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl"))
    return bundled[-1] if bundled else None


def run(
    argv: Sequence[str], name: str, progress: Progress, variables: Mapping[str, str] | None = None
) -> None:
    """Run an installer step for the build `name`, passing its lines on, with the time since its start.

    `variables` are set in its environment. Raises EngineFailed with the last of its lines.
    """
    tail: deque[str] = deque(maxlen=_TAIL)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")} | dict(variables or {})
    began = told = time.monotonic()
    try:
        with subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
        ) as process:
            assert process.stdout is not None
            for raw in process.stdout:
                line = raw.decode("utf-8", "replace").strip()
                if not line:
                    continue
                tail.append(line)
                now = time.monotonic()
                is_step = _STEP.match(line) is not None and now - told >= EVERY
                if is_step or line.startswith(_TOLD):
                    told = now
                    passed = f" ({duration(now - began)})" if now - began >= EVERY else ""
                    progress.note(f"  {line[:110]}{passed}")
    except OSError as error:
        raise _failed(name, str(error), tail) from None
    if process.returncode != 0:
        raise _failed(name, f"{Path(argv[0]).name} ended with status {process.returncode}", tail)


def _failed(name: str, what: str, tail: deque[str]) -> PreregError:
    shown = "".join(f"\n  {line}" for line in tail)
    return EngineFailed(f"the build {name} failed: {what}{shown}", next_step=command(name))


def command(name: str) -> str:
    """What makes the build `name`."""
    return f"prereg build {name}"
