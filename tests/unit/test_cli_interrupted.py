"""SIGINT and SIGTERM while a verb starts: it ends with 130 and says so, without a traceback.

The signal comes exactly when the N-th module of the program begins to be imported. `KILL_POINTS` above its
default tries more of these moments.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from prereg.cli.main import VERBS

MANY = int(os.environ.get("KILL_POINTS", "12")) > 12
SIGNALS = (signal.SIGINT, signal.SIGTERM)
NTH = """
import os, sys
left, number = int(sys.argv.pop(1)), int(sys.argv.pop(1))
from prereg.cli.start import run
def hook(event, _):
    global left
    if event == "import":
        left -= 1
        if left == 0:
            os.kill(os.getpid(), number)
sys.addaudithook(hook)
sys.argv[0] = "prereg"
try:
    run()
finally:
    if left > 0:
        sys.stderr.write(f"imports left: {left}")
"""
GIVEN = {
    "draft": ["--template", "two-arm"],
    "deviate": ["--text", "x"],
    "amend": ["--reason", "x"],
    "close": ["--reason", "x"],
    "relocate": ["--from", "y", "--reason", "x"],
}
BEFORE_ALL = ["--version"]
"""Fewest imports of all command lines."""


def interrupted(number: int, nth: int, place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command line that gets a signal at an import; without one, stderr ends with what is left."""
    command = [sys.executable, "-c", NTH, str(nth), str(number), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=place, check=False)


def test_the_moments_are_many(tmp_path: Path) -> None:
    done = interrupted(signal.SIGINT, 1 << 30, tmp_path, *BEFORE_ALL)
    assert done.returncode == 0
    assert (1 << 30) - int(done.stderr.rpartition(" ")[2]) > 200


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("nth", range(1, 200, 7 if MANY else 66))
def test_while_the_program_loads(nth: int, number: int, tmp_path: Path) -> None:
    done = interrupted(number, nth, tmp_path, *BEFORE_ALL)
    assert (done.returncode, done.stderr) == (130, "Stopped.\n")


@pytest.mark.parametrize("verb", VERBS)
def test_while_a_verb_loads(verb: str, tmp_path: Path) -> None:
    """What the verb imports for itself comes after what all of them import."""
    study = tmp_path / "studies" / "mine"
    study.mkdir(parents=True)
    arguments = [verb, str(study), *GIVEN.get(verb, [])]
    whole = interrupted(signal.SIGINT, 1 << 30, tmp_path, *arguments)
    count = (1 << 30) - int(whole.stderr.rpartition(" ")[2])
    chance = random.Random(verb)
    for number in SIGNALS if MANY else [chance.choice(SIGNALS)]:
        for nth in [count, *(chance.sample(range(200, count), 5) if MANY and count > 205 else [])]:
            done = interrupted(number, nth, tmp_path, *arguments)
            assert (done.returncode, done.stderr[-9:]) == (130, "Stopped.\n"), (nth, done.stderr)
            assert "Traceback" not in done.stderr


def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    """`nohup` and a shell's background jobs mean it."""
    command = [sys.executable, "-c", NTH, "50", str(int(signal.SIGINT)), *BEFORE_ALL]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("prereg ")
