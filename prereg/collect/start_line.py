"""The words that start a worker: its interpreter, what that runs first, what ends it with its collector."""

from __future__ import annotations

import shutil

# Python takes whatever a disk that fills up leaves of a file of byte code for all of it, and the next worker
# of the run, which shares the folder, would stumble over it: put there is what is whole.
_START = """
import os, sys
from importlib.machinery import SourceFileLoader

def put(self, path, data, *, _mode=0o666):
    part = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(part, "wb") as file:
            file.write(data)
        os.replace(part, path)
    except OSError:
        try:
            os.unlink(part)
        except OSError:
            pass

SourceFileLoader.set_data = put
sys.path.insert(0, sys.argv[1])
from harness.worker import main
raise SystemExit(main())
"""


def leash() -> list[str]:
    """Words in front of a command that is to die with the collector, where the system has them.

    A worker that hangs would otherwise live on for ever after its collector was killed.
    """
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []


def python_command(python: str, code: str) -> list[str]:
    """The worker's own command line: its interpreter, and the folder that holds `harness/`."""
    # Isolated as by `-I`, except that Python's variables count: whoever starts it makes them, and all others.
    return [python, "-s", "-P", "-c", _START, code]
