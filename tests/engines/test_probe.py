"""`prereg probe` on the real engine: the exact channel's verdicts, and the failing path it shows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PREREG = str(Path(sys.executable).parent / "prereg")
SYNTHID = 'watermarking={"kind":"synthid","keys":[654,400,836],"ngram_len":5}'

ROWS: dict[str, tuple[list[str], str]] = {
    "plain": ([], "EQUAL_WITHIN_TOLERANCE"),
    "minimum length": (["min_new_tokens=2"], "EQUAL_WITHIN_TOLERANCE"),
    "sequence bias": (["sequence_bias=[[[1],2.0]]"], "EQUAL_WITHIN_TOLERANCE"),
    "stop string": (['stop_strings=["cd"]'], "DEPARTS"),
    "guidance": (["guidance_scale=1.5"], "DEPARTS"),
    "SynthID": ([SYNTHID], "DEPARTS"),
    "nothing proposed": (
        ["temperature=0.7", "top_k=3", "top_p=0.9", "repetition_penalty=1.3"],
        "INCONCLUSIVE",
    ),
}


def probe(*arguments: str) -> dict[str, Any]:
    command = [PREREG, "probe", "--build", "hf-5.17.0", "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def settings(given: list[str]) -> list[str]:
    return [part for setting in given for part in ("--set", setting)]


@pytest.mark.engines
@pytest.mark.parametrize("name", ROWS)
def test_prompt_lookup(name: str) -> None:
    given, verdict = ROWS[name]
    found = probe(*settings(given))
    assert found["verdict"] == verdict, found["reason"]
    assert found["exploratory"] is True
    assert all(found["admission"][arm]["ok"] for arm in ("off", "on"))
    assert abs(sum(m["p"] for m in found["on"]) - 1) < 1e-9
    if verdict == "EQUAL_WITHIN_TOLERANCE":
        assert found["tv_upper"] < 1e-6 and found["proposals"] > 0
        assert found["failing_path"] is None
    if verdict == "DEPARTS":
        assert found["tv_lower"] > 0.1
        assert found["failing_path"]["what"] == ("stop" if name == "stop string" else "row")
    if name == "stop string":
        assert found["witness_mass"] == pytest.approx(found["tv"], abs=1e-6)
    if name == "guidance":
        path = found["failing_path"]
        assert path["saw"] == path["should_have_seen"]
        assert len(path["calls"]) > len(path["sequential_calls"])
    if name == "nothing proposed":
        assert found["proposals"] == 0


DRAFT_MODEL: dict[str, tuple[list[str], str]] = {
    "plain": ([], "EQUAL_WITHIN_TOLERANCE"),
    "guidance": (["guidance_scale=1.5"], "DEPARTS"),
    "SynthID": ([SYNTHID], "DEPARTS"),
}


@pytest.mark.engines
@pytest.mark.parametrize("name", DRAFT_MODEL)
def test_draft_model(name: str) -> None:
    given, verdict = DRAFT_MODEL[name]
    found = probe("--drafter", "assistant", *settings(["top_k=3", *given]))
    assert found["verdict"] == verdict, found["reason"]
    assert found["proposals"] > found["accepted"] > 0
    # The whole tree was walked, though its masses sum to 1 only up to a rounding (SynthID's do not quite).
    assert found["tv"] == found["tv_upper"]
    if verdict == "EQUAL_WITHIN_TOLERANCE":
        assert found["tv_upper"] < 1e-6
    else:
        assert found["tv_lower"] > 0.01


@pytest.mark.engines
def test_a_budget_leaves_a_rigorous_interval() -> None:
    exact = probe("--set", "guidance_scale=1.5")
    bounded = probe("--set", "guidance_scale=1.5", "--budget", "12")
    assert bounded["tv"] is None
    assert bounded["unexplored"]["on"] > 0
    assert bounded["tv_lower"] <= exact["tv"] <= bounded["tv_upper"]


@pytest.mark.engines
def test_an_unknown_parameter_is_refused() -> None:
    command = [PREREG, "probe", "--build", "hf-5.17.0", "--set", "colour=1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "colour" in done.stderr and "Traceback" not in done.stderr
