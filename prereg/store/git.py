"""One call of the git program, in an environment of its own.

GitPython runs the program; it is imported by the first call and not by importing this module. Every call gets
a clean environment: no inherited ``GIT_*`` variable, no replace objects, no hooks, no line-end conversion,
and no transport but where a caller names some.

Filters (``filter.X.clean``) cannot be switched off here: no caller may use a command that reads the work tree
through them, such as ``git status`` or ``git add``. With transports git runs the programs that the settings
of the user and of the repository name for them (``core.sshCommand``, credential helpers, ``receivepack``).
Only a push does that; verifying runs none of it.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from prereg.errors import WrongState

_SAFE = (
    "core.hooksPath=/dev/null",
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.fsmonitor=false",
    "core.commitGraph=false",
    "core.quotePath=false",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "gc.auto=0",
    "log.showSignature=false",
    # A repository that was handed over can name programs as transports; nothing here needs any transport.
    "protocol.allow=never",
    "protocol.ext.allow=never",
    "protocol.file.allow=never",
)
_ENVIRONMENT = {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"} | {
    # The setting of the repository itself would win over `protocol.allow`; this list, empty, wins over all.
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
}
_TRANSPORTS = {"GIT_ALLOW_PROTOCOL": "file:git:ssh:http:https"}
_ENVIRON_LOCK = threading.RLock()


@contextlib.contextmanager
def clean_environment() -> Iterator[None]:
    """Take every GIT_* variable out of this process while git is started (GitPython copies os.environ)."""
    with _ENVIRON_LOCK:
        held = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("GIT_")}
        try:
            yield
        finally:
            os.environ.update(held)


def library() -> Any:
    """GitPython, imported on first use. Raises WrongState where there is no git program."""
    with clean_environment():
        try:
            import git
        except ImportError:  # GitPython looks for the program while it is imported
            raise _no_git() from None
    return git


def _no_git() -> WrongState:
    return WrongState("the git program is not installed", where="git", next_step="install git")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    status: int
    output: bytes
    error: str

    @property
    def text(self) -> str:
        return self.output.decode("utf-8", "surrogateescape")


def run(
    command: Any,
    arguments: list[str],
    *,
    stdin: bytes | None = None,
    env: Mapping[str, str] | None = None,
    transports: bool = False,
) -> Result:
    """Run git with `arguments` and return what it printed; nothing is raised for a status above 0.

    With `transports` git may talk to another repository, by its own protocols alone and no remote helper such
    as `ext::`. It then runs what the settings name for these protocols, ssh and credential helpers included:
    a push needs them, so push only from a repository whose settings are your own.
    """
    options = [part for setting in _SAFE for part in ("-c", setting)]
    with clean_environment(), tempfile.TemporaryFile() as source:
        source.write(stdin or b"")
        source.seek(0)
        try:
            status, output, error = command.execute(
                ["git", "--no-pager", *options, *arguments],
                istream=source,
                with_extended_output=True,
                with_exceptions=False,
                stdout_as_string=False,
                strip_newline_in_stdout=False,
                env={**_ENVIRONMENT, **(_TRANSPORTS if transports else {}), **(env or {})},
            )
        except library().exc.GitCommandNotFound:
            raise _no_git() from None
    return Result(
        status=int(status),
        output=output if isinstance(output, bytes) else str(output).encode(),
        error=error if isinstance(error, str) else bytes(error).decode("utf-8", "replace"),
    )
