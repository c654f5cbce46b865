"""The other end of a worker, as small as can be: for tests, `harness.bench`, and to try a build by hand.

The collector has its own, with watchdogs, a network namespace and seals.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from harness.wire import ENGINE, JobError

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What one request came to."""

    ok: dict[str, Any]
    requests: list[dict[str, Any]]
    """The `request` lines that came before it (only `draws` has any)."""


class Session:
    """One worker, run by the interpreter `python` from the harness under `root`.

    `prelude` is Python code that runs in the worker before it starts to serve, `pass_fds` the descriptors
    that it inherits besides the standard ones. A worker that takes more than `patience` seconds over one
    request is killed, which its reader sees as EOFError.
    """

    __slots__ = ("_number", "_patience", "process")

    def __init__(
        self,
        python: str,
        root: Path = ROOT,
        prelude: str = "",
        pass_fds: tuple[int, ...] = (),
        patience: float = 600.0,
    ) -> None:
        code = (
            f"import sys; sys.path.insert(0, {str(root)!r})\n{prelude}\n"
            "from harness.worker import main; raise SystemExit(main())"
        )
        self.process = subprocess.Popen(
            [python, "-I", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=pass_fds
        )
        self._number = 0
        self._patience = patience

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def write(self, raw: bytes) -> None:
        """Send bytes as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(raw)
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """The next line from the worker; EOFError if it has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise EOFError(f"the worker ended with status {self.process.wait()}")
        message: dict[str, Any] = json.loads(line)
        return message

    def ask(self, op: str, **fields: Any) -> Reply:
        """Send a request and wait for its end. Raises the worker's `JobError`, or EOFError."""
        requests: list[dict[str, Any]] = []
        for message in self.stream(op, **fields):
            if "request" in message:
                requests.append(message["request"])
            elif "error" in message:
                raise JobError(message["error"]["code"], message["error"]["message"])
            else:
                return Reply(ok=message["ok"], requests=requests)
        raise JobError(ENGINE, "unreachable: a stream ends with ok or error")

    def stream(self, op: str, **fields: Any) -> Iterator[dict[str, Any]]:
        """Send a request and yield its lines as they come, up to its `ok` or `error`."""
        self._number += 1
        self.write(json.dumps({"op": op, "id": self._number, **fields}).encode() + b"\n")
        timer = threading.Timer(self._patience, self.process.kill)
        timer.start()
        try:
            while True:
                message = self.read()
                if message["id"] != self._number:
                    raise JobError(ENGINE, f"a line for {message['id']} in answer to {self._number}")
                yield message
                if "ok" in message or "error" in message:
                    return
        finally:
            timer.cancel()

    def end(self, patience: float = 30.0) -> int:
        """Close the worker's input, wait for it (then kill it), and return its exit status."""
        assert self.process.stdin is not None and self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it may have ended before it read everything
            self.process.stdin.close()
        try:
            status = self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self.process.stdout.close()
        return status
