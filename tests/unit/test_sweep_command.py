"""`prereg sweep` without an engine: usage, the list, and what does not load at start."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PREREG = str(Path(sys.executable).parent / "prereg")

USAGE = {
    "no build named": [],
    "no such build": ["--build", "nowhere"],
    "a build of no engine": ["--build", "plain"],
    "no such case": ["--build", "hf-5.20.2", "--only", "nope"],
    "no such drafter": ["--build", "hf-5.20.2", "--drafter", "crystal-ball"],
    "nothing to fail on": ["--build", "hf-5.20.2", "--fail-on", "rain"],
    "no process": ["--build", "hf-5.20.2", "--processes", "0"],
    "a folder that is none": ["--build", "hf-5.20.2", "--junit", "nowhere/at/all.xml"],
}


def sweep(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PREREG, "sweep", *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("build", ["lcp-0.3.19", "lcp-0.3.35"])
def test_a_draft_model_for_an_engine_that_takes_none_is_a_usage_error(build: str) -> None:
    """Before anything runs: whether the build is made does not matter."""
    done = sweep("--build", build, "--drafter", "assistant", "--list")
    assert done.returncode == 2, done.stderr
    assert "prompt-lookup is the only one" in done.stderr
    assert sweep("--build", build, "--list").returncode == 0
    assert sweep("--build", "hf-5.20.2", "--drafter", "assistant", "--list").returncode == 0


@pytest.mark.parametrize("name", USAGE)
def test_a_usage_error_ends_with_2(name: str) -> None:
    done = sweep(*USAGE[name])
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: ") and "Traceback" not in done.stderr


def test_the_list_has_every_case_and_the_reasons_for_what_is_none() -> None:
    done = sweep("--build", "hf-5.20.2", "--list", "--json")
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    names = {case["name"] for case in value["cases"]}
    assert {"plain", "guidance", "synthid", "stop-string", "guidance+top-k"} <= names
    assert all(value["excluded"].values()) and all(value["uncovered"].values())


def test_a_build_that_is_not_made_ends_with_4(tmp_path: Path) -> None:
    done = subprocess.run(
        [PREREG, "sweep", "--build", "hf-5.20.2"],
        capture_output=True,
        text=True,
        check=False,
        env={"PREREG_CACHE": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 4 and "prereg build hf-5.20.2" in done.stderr
