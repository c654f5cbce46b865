"""The collector's end of the wire: one worker process, its replies, and the watchdog over it."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from typing import Protocol as Interface

from prereg.collect.network import Isolation
from prereg.collect.start_line import leash, python_command

SETUP_SECONDS = 600.0
"""Longest silence while a worker starts, is fingerprinted or opens a configuration."""
MAX_LINE = 256 * 1024 * 1024
_STDERR_KEPT = 16 * 1024
_CHUNK = 1 << 16


class WorkerLost(Exception):
    """The worker died, fell silent or broke the protocol; it is gone, and what it was doing is void."""


class WorkerSilent(WorkerLost):
    """The watchdog ended it: nothing came of it for too long."""


class WorkerStopped(WorkerLost):
    """It was stopped at a ceiling of time."""


class WorkerRefused(Exception):
    """The worker answered a request with an error. It is still there."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A process to be started."""

    argv: list[str]
    cwd: Path
    variables: dict[str, str]


class Start(Interface):
    """A way to start one worker, and to stop whatever of it is not in the group of the started process."""

    @property
    def grace(self) -> float:
        """Seconds that the process may take to end, once the worker has."""
        ...

    def command(self) -> Command:
        """The process whose streams are the worker's. Called once."""
        ...

    def stop(self) -> None:
        """Stop what killing that process leaves. Safe from any thread, any number of times."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A worker in the environment of its build, on this machine."""

    python: Path
    """The interpreter of the build's environment."""
    code: Path
    """A folder that holds `harness/`."""
    scratch: Path
    """The worker's own folder for home, caches and temporary files."""
    isolation: Isolation
    byte_code: Path | None = None
    """Private folder of the run for byte code: what lies beside the sources, which no fingerprint covers, is
    then not executed. None where a mistake costs no evidence (probe, sweep): to compile an engine anew takes
    some seconds."""

    @property
    def grace(self) -> float:
        """See `Start.grace`."""
        return 0.2

    def command(self) -> Command:
        """See `Start.command`."""
        self.scratch.mkdir(parents=True, exist_ok=True)
        variables = environment(str(self.scratch), str(self.python.parent))
        if self.byte_code is not None:
            # The workers of a run share the folder: each file is put there whole or not at all.
            self.byte_code.mkdir(mode=0o700, parents=True, exist_ok=True)
            del variables["PYTHONDONTWRITEBYTECODE"]
            variables["PYTHONPYCACHEPREFIX"] = str(self.byte_code)
        return Command(
            argv=[*self.isolation.prefix, *leash(), *python_command(str(self.python), str(self.code))],
            cwd=self.scratch,
            variables=variables,
        )

    def stop(self) -> None:
        """See `Start.stop`: the group has everything."""


class Worker:
    """One worker process. Every method but `kill` belongs to the thread that started it."""

    def __init__(self, launch: Start) -> None:
        self._launch = launch
        command = launch.command()
        self._process = subprocess.Popen(
            command.argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=command.cwd,
            env=command.variables,
            start_new_session=True,
            bufsize=0,
        )
        self._selector = selectors.DefaultSelector()
        self._pending = bytearray()
        self._ready: deque[bytes] = deque()
        self._stderr: deque[bytes] = deque()
        self._stderr_size = 0
        self._number = 0
        self._open = True
        # Reentrant, because a signal handler may kill a worker while its thread is killing it.
        self._reaping = threading.RLock()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
        self._selector.register(self._out, selectors.EVENT_READ)
        self._selector.register(self._err, selectors.EVENT_READ)

    @property
    def pid(self) -> int:
        """Process id, which is its process group's too."""
        return self._process.pid

    @property
    def _in(self) -> int:
        assert self._process.stdin is not None
        return self._process.stdin.fileno()

    @property
    def _out(self) -> int:
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    @property
    def _err(self) -> int:
        assert self._process.stderr is not None
        return self._process.stderr.fileno()

    def call(
        self,
        op: str,
        *,
        silence: float = SETUP_SECONDS,
        left: Callable[[], float] | None = None,
        streams: Mapping[str, Callable[[Any], None]] | None = None,
        **fields: Any,
    ) -> Any:
        """Send a request and return the value of its `ok`.

        What is streamed before it goes to the function that `streams` has for its name. The worker is
        killed after `silence` seconds without a line, or when `left()` reaches 0. Raises
        WorkerRefused for an error reply, WorkerLost for all else.
        """
        if self._ready or self._pending:
            self._lose(f"spoke out of turn: {_show(self._ready[0] if self._ready else bytes(self._pending))}")
        self._number += 1
        message = {"op": op, "id": self._number, **fields}
        out = json.dumps(message, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        for line in self._lines(out, op, silence, left):
            reply = self._parse(line)
            streamed = next((name for name in streams or () if name in reply), None)
            if streamed is not None and streams is not None:
                streams[streamed](reply[streamed])
            elif "ok" in reply:
                return reply["ok"]
            elif isinstance(reply.get("error"), dict):
                error = reply["error"]
                raise WorkerRefused(str(error.get("code")), str(error.get("message")))
            else:
                self._lose(f"sent a reply of no known form: {_show(line)}")
        raise AssertionError("the wire never ends without an error")

    def _parse(self, line: bytes) -> dict[str, Any]:
        try:
            reply = json.loads(line, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            self._lose(f"sent a line that is not JSON: {_show(line)}")
        if not isinstance(reply, dict):
            self._lose(f"sent a line that is not an object: {_show(line)}")
        if reply.get("id") != self._number:
            self._lose(f"answered request {reply.get('id')!r} instead of {self._number}: {_show(line)}")
        return reply

    def _lines(
        self, out: bytes, op: str, silence: float, left: Callable[[], float] | None
    ) -> Iterator[bytes]:
        """Write `out` and yield lines as they come; watch the clock over both."""
        view = memoryview(out)
        self._selector.register(self._in, selectors.EVENT_WRITE)
        writing = True
        heard = time.monotonic()
        try:
            while True:
                wait = heard + silence - time.monotonic()
                budget = wait if left is None else left()
                if budget <= 0 < wait:
                    self._lose("was stopped at its ceiling of time", WorkerStopped)
                if wait <= 0:
                    self._lose(f"sent nothing for {silence:g} seconds during {op!r}", WorkerSilent)
                for key, _ in self._selector.select(min(wait, budget)):
                    if key.fd == self._in:
                        view = view[self._write(view, op) :]
                        if not view:
                            self._selector.unregister(self._in)
                            writing = False
                    elif key.fd == self._err:
                        self._read_stderr()
                    else:
                        self._read_stdout(op)
                while self._ready:
                    yield self._ready.popleft()
                    heard = time.monotonic()
        finally:
            if writing and self._open:
                self._selector.unregister(self._in)

    def _write(self, view: memoryview, op: str) -> int:
        try:
            return os.write(self._in, view)
        except BlockingIOError:
            return 0
        except OSError:
            self._lose(f"ended before it took the request {op!r}")

    def _read_stdout(self, op: str) -> None:
        try:
            data = os.read(self._out, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self._lose(f"ended during {op!r}")
        start = len(self._pending)
        self._pending += data
        if len(self._pending) > MAX_LINE:
            self._lose("sent a line without end")
        if self._pending.find(b"\n", start) < 0:
            return
        *lines, rest = bytes(self._pending).split(b"\n")
        self._pending = bytearray(rest)
        self._ready.extend(line for line in lines if line.strip())

    def _read_stderr(self) -> None:
        try:
            data = os.read(self._err, _CHUNK)
        except OSError:
            return
        if not data:
            self._selector.unregister(self._err)
            return
        self._stderr.append(data)
        self._stderr_size += len(data)
        while self._stderr_size - len(self._stderr[0]) > _STDERR_KEPT:
            self._stderr_size -= len(self._stderr.popleft())

    def said(self) -> str:
        """What the worker and its children have written to stderr by now; its last lines."""
        os.set_blocking(self._err, False)
        self._read_stderr()
        return self.stderr_tail()

    def stderr_tail(self, lines: int = 12) -> str:
        """The last lines that the worker wrote to stderr."""
        text = b"".join(self._stderr).decode("utf-8", "replace")
        return "\n".join(text.rstrip().splitlines()[-lines:])

    def _lose(self, what: str, kind: type[WorkerLost] = WorkerLost) -> NoReturn:
        """Kill the worker and raise WorkerLost with how it ended and what it said last."""
        ended = self._exits(self._launch.grace)  # one that is ending by itself shall tell its own exit status
        self.kill()
        with contextlib.suppress(OSError, KeyError, ValueError):
            self._read_stderr()
        tail = self.stderr_tail()
        self.close()
        if ended:
            what += f"; {_status(self._process.returncode)}"
        raise kind(f"the worker {what}" + (f"; its last words: {tail}" if tail else ""))

    def kill(self) -> None:
        """Kill all of the worker. Safe from any thread and any number of times."""
        with self._reaping:
            self._kill_group()

    def _kill_group(self) -> None:
        # Once the worker is reaped its number may be another process's.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._launch.stop()

    def _exits(self, seconds: float) -> bool:
        """Whether the worker exits within that time; it stays unreaped."""
        until = time.monotonic() + seconds
        while True:
            if os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return True
            if time.monotonic() >= until:
                return False
            time.sleep(0.005)

    def close(self, grace: float = 5.0) -> None:
        """End the worker, politely if it listens, with whatever it has started, and reap it."""
        if not self._open:
            return
        self._open = False
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._exits(grace)
        with self._reaping:
            self._kill_group()
            self._process.wait()
        self._selector.close()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exc: object) -> None:
        if exc[0] is not None:
            self.kill()
        self.close()


def environment(scratch: str, bin_folder: str) -> dict[str, str]:
    """The worker's whole environment: nothing of the user's, no tokens, no way online."""
    return {
        "PATH": os.pathsep.join([bin_folder, "/usr/local/bin", "/usr/bin", "/bin"]),
        "HOME": scratch,
        "TMPDIR": scratch,
        "XDG_CACHE_HOME": scratch,
        "XDG_CONFIG_HOME": scratch,
        "HF_HOME": scratch,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def _status(code: int) -> str:
    if code >= 0:
        return f"exit status {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def _show(line: bytes) -> str:
    text = line[:120].decode("utf-8", "replace")
    return repr(text) + ("…" if len(line) > 120 else "")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)
