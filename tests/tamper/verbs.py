"""The programs that must refuse: prereg's verbs and the auditor, each run as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

from audits.cli import main as auditor
from prereg.cli import main as command_line

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """How a program ended."""

    code: int
    """Its exit code, or minus the signal that ended it."""
    said: str
    """What it wrote to stdout and stderr."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A verb of prereg that runs in a session of its own, to be killed with all that it started."""

    pid: int
    out: IO[bytes]

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to the whole process group."""
        os.killpg(self.pid, number)

    def wait(self, seconds: float = 300.0) -> Done:
        """Wait for its end; a verb that does not end is killed, and that is a failure."""
        until = time.monotonic() + seconds
        while True:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                break
            if time.monotonic() > until:
                self.kill()
                os.waitpid(self.pid, 0)
                raise AssertionError(f"did not end within {seconds} seconds")
            time.sleep(0.005)
        with self.out:
            self.out.seek(0)
            said = self.out.read().decode("utf-8", "replace")
        return Done(code=os.waitstatus_to_exitcode(status), said=said)


def run(
    verb: str, study: Path, key: str, env: Mapping[str, str], before: Callable[[], object] = lambda: None
) -> Done:
    """Run `auditor`, or a verb of prereg; one that signs does so with the key of `key`."""
    if verb == "auditor":

        def main() -> None:
            before()
            sys.exit(auditor([str(study)]))

        return _start(main, env).wait()
    arguments = [verb, str(study)]
    if verb in ("seal", "collect", "analyse", "audit"):
        arguments += ["--key", str(study.parents[2] / "keys" / key)]
    return start(*arguments, env=env, before=before).wait()


def auditor_alone(study: Path, env: Mapping[str, str]) -> Done:
    """Run the auditor as a reviewer does, where nothing of prereg is loaded."""
    command = [sys.executable, "-I", str(ROOT / "audits"), str(study)]
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, check=False)
    return Done(code=done.returncode, said=(done.stdout + done.stderr).decode("utf-8", "replace"))


def prereg(*arguments: str, env: Mapping[str, str] | None = None) -> Done:
    """Run a command line of prereg to its end."""
    return start(*arguments, env=env).wait()


def start(
    *arguments: str, env: Mapping[str, str] | None = None, before: Callable[[], object] = lambda: None
) -> Running:
    """Start a command line in a fork of this process, where its modules are loaded already.

    `before` is called in the new process, before the command line is read.
    """

    def main() -> None:
        sys.argv = ["prereg", *arguments]
        before()
        command_line.run()

    return _start(main, env or {})


def _start(main: Callable[[], object], env: Mapping[str, str]) -> Running:
    out = tempfile.TemporaryFile()  # noqa: SIM115 (`Running.wait` closes it)
    pid = os.fork()
    if pid == 0:
        _child(out.fileno(), main, env)
    return Running(pid=pid, out=out)


def _child(out: int, main: Callable[[], object], env: Mapping[str, str]) -> NoReturn:
    code = 70
    try:
        os.setsid()
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.environ.update(env)
        # Wide enough that no table breaks a word that a test looks for.
        os.environ["COLUMNS"] = "400"
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False)
        main()
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else 70
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
