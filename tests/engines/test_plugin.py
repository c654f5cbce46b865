"""The pytest plugin on the real engine, as a user's suite meets it: three lines and a class."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from prereg.collect.runtime import cache_folder
from prereg.errors import UsageError, WrongState
from prereg.testing import Departure, assert_no_departure
from tests.engines.hf_environment import hf_python

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.engines

CACHE = str(cache_folder())
"""Known before pytester moves the home folder."""

PROCESSORS = """
import torch


class Honours:
    '''What it does follows from the prefix alone, though it keeps what it has seen.'''

    def __init__(self, bias):
        self.bias = bias
        self.seen = []

    def __call__(self, input_ids, scores):
        self.seen.append(input_ids.shape[1])
        scores = scores.clone()
        scores[:, 1] += self.bias * (input_ids[:, -1] % 2)
        return scores


class Counts:
    '''What it does depends on how often it was called.'''

    def __init__(self, bias):
        self.bias = bias
        self.calls = 0

    def __call__(self, input_ids, scores):
        self.calls += 1
        scores = scores.clone()
        scores[:, 1] += self.bias * (self.calls % 3)
        return scores


class Remembers:
    '''It counts on its class, which no request has for itself.'''

    calls = 0

    def __call__(self, input_ids, scores):
        Remembers.calls += 1
        return scores


class Shares:
    '''Its default argument is one list for all instances.'''

    def __init__(self, seen=[]):
        self.seen = seen

    def __call__(self, input_ids, scores):
        self.seen.append(input_ids.shape[1])
        return scores


class Breaks:
    '''It raises at every call.'''

    def __call__(self, input_ids, scores):
        raise KeyError("no such token")


class OneToken:
    '''All mass on the end token: there is nothing to propose.'''

    def __call__(self, input_ids, scores):
        scores = torch.full_like(scores, -float("inf"))
        scores[:, 6] = 0.0
        return scores


class StopsAt:
    '''A stopping criterion.'''

    def __init__(self, token):
        self.token = token

    def __call__(self, input_ids, scores, **kwargs):
        return input_ids[:, -1] == self.token
"""


@pytest.fixture
def processors(tmp_path: Path) -> str:
    file = tmp_path / "processors.py"
    file.write_text(PROCESSORS)
    return str(file)


def test_a_users_suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both kinds of class in one suite: the one passes, the other fails with its path, at the test's line."""
    monkeypatch.setenv("PREREG_CACHE", CACHE)
    # This environment has no engine to import, so the classes must not need one to be imported either.
    source = PROCESSORS.replace("import torch\n", "")
    pytester.makepyfile(mine=source)
    pytester.makepyfile(
        """
        from mine import Counts, Honours

        def test_honours(no_departure):
            found = no_departure(processor=Honours, arguments={"bias": 2.0})
            assert found.tv < 1e-6 and found.exact.proposals > 0
            assert len(found.on) == len(found.off) == 259

        def test_counts(no_departure):
            no_departure(processor=Counts, arguments={"bias": 2.0})
        """
    )
    done = pytester.runpytest_subprocess("--prereg-build", "hf-5.17.0")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.re_match_lines_random(
        [
            r".*no_departure\(processor=Counts, arguments=\{'bias': 2.0\}\).*|>.*processor=Counts.*",
            r"E .*DEPARTS: total variation at least .*",
            r"E .*hf \(hf-5.17.0\), prompt-lookup, Counts\(bias=2.0\)",
            r"E .*total variation +0\.\d+",
            r"E .*largest event .*",
            r"E .*after the prefix .*",
            r"E .*the processor saw +a b c d a b c d a b.*",
            r"E .*it should have seen +a b c d a b c d a b.*",
            r"E .*its calls were .*; .*",
            r"E .*sequentially .*",
        ]
    )
    assert "assertion.py" not in done.stdout.str(), "the test's line is the one to show"


@pytest.mark.parametrize("name", ["Remembers", "Shares"])
def test_state_that_outlives_a_request_is_void(processors: str, name: str) -> None:
    """Though the law is not changed by it here."""
    with pytest.raises(Departure, match="VOID") as caught:
        assert_no_departure(processor=f"{processors}:{name}", build="hf-5.17.0", horizon=1)
    assert caught.value.finding.tv < 1e-6
    assert caught.value.finding.verdict == "VOID"
    assert "state digest" in str(caught.value) and "outlives a request" in str(caught.value)


def test_a_class_that_changes_nothing_fails_unless_allowed(processors: str) -> None:
    """Though both laws are equal, as they are for any class that is never called."""
    said = {"processor": f"{processors}:Honours", "arguments": {"bias": 0.0}, "build": "hf-5.17.0"}
    with pytest.raises(Departure, match="equal, but processor changed nothing") as caught:
        assert_no_departure(**said, features={"temperature": 0.8}, horizon=2)
    assert caught.value.finding.activity["processor"] < 1e-5
    found = assert_no_departure(**said, horizon=2, allow_inconclusive=True)
    assert found.verdict == "INCONCLUSIVE"
    assert assert_no_departure(build="hf-5.17.0", horizon=2).activity == {}


def test_nothing_proposed_fails_unless_allowed(processors: str) -> None:
    with pytest.raises(Departure, match="INCONCLUSIVE") as caught:
        assert_no_departure(processor=f"{processors}:OneToken", build="hf-5.17.0")
    assert "Nothing proposed proves nothing" in str(caught.value)
    found = assert_no_departure(
        processor=f"{processors}:OneToken", build="hf-5.17.0", allow_inconclusive=True
    )
    assert found.verdict == "INCONCLUSIVE"


def test_a_stopping_criterion_is_asked_once_a_block(processors: str) -> None:
    """The engine asks after a block, so a token that should end the request is followed by others."""
    with pytest.raises(Departure, match="DEPARTS") as caught:
        assert_no_departure(
            stopping=f"{processors}:StopsAt", stopping_arguments={"token": 2}, build="hf-5.17.0"
        )
    path = caught.value.finding.path
    assert path is not None and path["what"] == "stop" and path["criteria"][-1] == "StopsAt"
    # It never saw what it should have stopped.
    saw = [call["saw"] for call in path["calls"] if call["processor"] == "StopsAt"]
    assert path["should_have_seen"] not in saw
    assert "went on past a stop" in str(caught.value)


def test_a_processor_that_raises_is_no_equality(processors: str) -> None:
    with pytest.raises((UsageError, Departure), match=r"KeyError|crash") as caught:
        assert_no_departure(processor=f"{processors}:Breaks", build="hf-5.17.0")
    assert "--set" not in str(caught.value)


def test_the_environment_that_runs_the_tests_is_used(
    processors: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`build=None`, from an interpreter that has the engine."""
    monkeypatch.setattr(sys, "executable", hf_python())
    found = assert_no_departure(
        processor=f"{processors}:Honours", arguments={"bias": 1.0}, engine="hf", horizon=2
    )
    assert found.verdict == "EQUAL_WITHIN_TOLERANCE" and found.activity["processor"] > 1e-3
    assert found.configuration["build"] == "own"


def test_a_draft_model_gives_the_processor_its_due(processors: str) -> None:
    said = {"build": "hf-5.17.0", "drafter": "assistant", "features": {"top_k": 3}, "horizon": 2}
    # A smaller bias does not lift its token among the three, and so changes nothing.
    found = assert_no_departure(processor=f"{processors}:Honours", arguments={"bias": 4.0}, **said)
    assert found.exact.accepted > 0 and found.activity["processor"] > 0.1
    with pytest.raises(Departure, match="DEPARTS"):
        assert_no_departure(processor=f"{processors}:Counts", arguments={"bias": 4.0}, **said)


LLAMA = """
import numpy as np


class Constant:
    '''It does not look at what it is shown.'''

    def __init__(self, bias):
        self.bias = bias

    def __call__(self, input_ids, scores):
        scores = np.array(scores, copy=True)
        scores[1] += self.bias
        return scores


class LastToken(Constant):
    '''It reads the last token that it is shown.'''

    def __call__(self, input_ids, scores):
        scores = np.array(scores, copy=True)
        scores[1] += self.bias * (int(input_ids[-1]) % 2)
        return scores
"""


def test_llama_cpp_python_shows_a_processor_more_than_its_prefix(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(LLAMA)
    said = {"arguments": {"bias": 1.0}, "build": "lcp-0.3.35", "horizon": 3}
    found = assert_no_departure(processor=f"{tmp_path / 'mine.py'}:Constant", **said)
    assert found.configuration["adapter"] == "llamacpp" and found.exact.proposals > 0
    with pytest.raises(Departure, match="the processor saw") as caught:
        assert_no_departure(processor=f"{tmp_path / 'mine.py'}:LastToken", **said)
    path = caught.value.finding.path
    assert path is not None and len(path["saw"]) > len(path["should_have_seen"])


def test_a_build_that_is_not_built_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREREG_CACHE", str(tmp_path))
    with pytest.raises(WrongState, match=r"the build hf-5.17.0 is not built .next: prereg build hf-5.17.0"):
        assert_no_departure(build="hf-5.17.0")


def test_a_file_that_the_engine_cannot_load_says_why(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import hypothesis\nclass Mine: ...\n")
    with pytest.raises(UsageError, match=r"mine\.py cannot be loaded in the engine's environment: ModuleNot"):
        assert_no_departure(processor=f"{tmp_path / 'mine.py'}:Mine", build="hf-5.17.0")
