"""A sealed study whose workers run in containers, and what its ledger says of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from prereg.collect.image import BuiltImage
from prereg.errors import PreregError
from prereg.seal.build import seal_study
from prereg.store.layout import StudyPaths, distribution_root
from tests.unit.test_collect_kit import AUTHOR, Desk, configuration, make_study, types_of

HUNGRY = """
import sys
if sys.argv[1] == "b":
    hoard = bytearray(400 << 20)
print('{"value": "a"}\\n' * int(sys.argv[3]), end="")
"""

HANGS = """
import sys, time
if sys.argv[1] == "b":
    time.sleep(600)
print('{"value": "a"}\\n' * int(sys.argv[3]), end="")
"""

ON_HOST = "if words[0] == 'run': words[words.index('--network') + 1] = 'host'"
LIE = """
if words[:2] == ['container', 'inspect']:
    told = subprocess.run([REAL, *words], capture_output=True, text=True).stdout
    print(told.replace('"NetworkMode": "host"', '"NetworkMode": "none"'))
    sys.exit()
"""

OPENED = {
    "network": (ON_HOST, "its network is 'host'"),
    "network-that-nobody-tells-of": (LIE + ON_HOST, "it has the network interfaces"),
    "writable-root": ("words = [word for word in words if word != '--read-only']", "its read-only root is"),
    "capabilities": ("words = ['NET_RAW' if word == 'ALL' else word for word in words]", "capabilities"),
    "root": ("words = [word.replace('65534:65534', '0:0') for word in words]", "its user is"),
    "privileges": (
        "words = [w.replace('no-new-privileges', 'label=disable') for w in words]",
        "it may gain privileges",
    ),
    "second-mount": (
        "if words[0] == 'run': words[1:1] = ['--volume', '/var/tmp:/extra']",
        "it mounts ['/extra', '/study']",
    ),
    "writable-study": ("words = [w.replace(',readonly=true', '') for w in words]", "it may write to /study"),
    "no-memory-limit": (
        "words = [str(1 << 33) if w == str(4 << 30) else w for w in words]",
        "its memory is",
    ),
}
"""What a program before the engine does to its command line, and what the refusal then says."""

SLOW = """
import json, sys, time
time.sleep(0.3)
for row in range(int(sys.argv[3])):
    print(json.dumps({"value": f"{sys.argv[1]}-{sys.argv[2]}-{row}"}))
"""


RUN = (
    f"import sys; sys.path.insert(0, {str(distribution_root())!r}); sys.argv[0] = 'prereg'; "
    "from prereg.cli.main import run; run()"
)


def prereg(repository: Path, *words: str) -> dict[str, Any]:
    """A verb in a process of its own, as a user types it; what it tells programs."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, *words],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout) if "--json" in words else {}
    assert isinstance(value, dict)
    return value


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A desk, and the image that its studies are sealed with."""

    desk: Desk
    image: BuiltImage

    def sealed(self, **changes: Any) -> StudyPaths:
        """A small study of two units in containers."""
        wanted: dict[str, Any] = {
            "edition": 2,
            "runtime": "container",
            "configurations": [configuration("one")],
            **changes,
        }
        paths = make_study(self.desk, seal=False, **wanted)
        seal_study(
            paths,
            key=self.desk.key,
            principal=AUTHOR,
            environments={"plain": self.image.fingerprint},
            images={"plain": self.image.digests},
        )
        return paths


def plant(monkeypatch: pytest.MonkeyPatch, folder: Path, body: str, engine: str = "podman") -> None:
    """Put a program of our own before the engine: `words` are its arguments, which `body` may change."""
    program = folder / "planted" / engine
    program.parent.mkdir(exist_ok=True)
    head = f"#!{sys.executable}\nimport os, subprocess, sys\nREAL = {shutil.which(engine)!r}\n"
    program.write_text(f"{head}words = sys.argv[1:]\n{body}\nos.execv(REAL, [REAL, *words])\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(program.parent), os.environ["PATH"]]))


def podman(*words: str) -> str:
    done = subprocess.run(["podman", *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def refused(bench: Bench) -> PreregError:
    """A collection that is refused before the first draw; the ledger has heard nothing of it."""
    with pytest.raises(PreregError) as caught:
        bench.desk.collect()
    assert types_of(bench.desk.paths("toy")) == ["sealed"]
    assert caught.value.next_step
    return caught.value


def containers() -> list[dict[str, Any]]:
    """What runs now, of anybody's."""
    value = json.loads(podman("ps", "--all", "--format", "json", "--filter", "label=prereg.worker") or "[]")
    assert isinstance(value, list)
    return value
