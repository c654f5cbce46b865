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
from prereg.seal.build import seal_study
from prereg.store.layout import StudyPaths
from tests.unit.test_collect_kit import AUTHOR, Desk, configuration, make_study

SLOW = """
import json, sys, time
time.sleep(0.3)
for row in range(int(sys.argv[3])):
    print(json.dumps({"value": f"{sys.argv[1]}-{sys.argv[2]}-{row}"}))
"""


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


def plant(monkeypatch: pytest.MonkeyPatch, folder: Path, body: str) -> None:
    """Put a program of our own before podman: `words` are its arguments, which `body` may change."""
    program = folder / "planted" / "podman"
    program.parent.mkdir(exist_ok=True)
    head = f"#!{sys.executable}\nimport os, subprocess, sys\nREAL = {shutil.which('podman')!r}\n"
    program.write_text(f"{head}words = sys.argv[1:]\n{body}\nos.execv(REAL, [REAL, *words])\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(program.parent), os.environ["PATH"]]))


def podman(*words: str) -> str:
    done = subprocess.run(["podman", *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def containers() -> list[dict[str, Any]]:
    """What runs now, of anybody's."""
    value = json.loads(podman("ps", "--all", "--format", "json", "--filter", "label=prereg.worker") or "[]")
    assert isinstance(value, list)
    return value
