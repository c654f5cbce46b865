"""What an assertion walks when little is said, and what it says when it fails."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prereg.collect import plain
from prereg.collect.choices import Walked
from prereg.errors import UsageError
from prereg.model.law import Decoded
from prereg.model.tree import ExactResult, Tree, TreeLeaf
from prereg.testing import Departure, assert_no_departure, assertion
from prereg.testing.assertion import Finding
from prereg.testing.case import Given, case_of
from prereg.testing.message import message

NOTHING_SAID = Given(
    build="hf-5.17.0",
    engine=None,
    features={},
    processors=[],
    stopping=[],
    drafter=None,
    model=None,
    prompt=None,
    horizon=None,
)
MINE = {"file": "/mine.py", "class": "Mine", "arguments": {"bias": 2.0}}


def test_the_plugin_loads_nothing_heavy() -> None:
    """It is part of every pytest run of the environment that it is installed in."""
    code = (
        "import sys, prereg.testing.plugin\n"
        "heavy = {'numpy', 'scipy', 'torch', 'transformers', 'git', 'cattrs', 'jsonschema', 'cryptography', "
        "'typer', 'rich', 'prereg.collect', 'prereg.analyse', 'prereg.draft', 'harness'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_blanks_are_filled_from_the_engine_of_the_build() -> None:
    case = case_of(NOTHING_SAID)
    assert case.where == "hf-5.17.0"
    assert (case.configuration["adapter"], case.configuration["horizon"]) == ("hf", 3)
    assert case.configuration["drafter"] == {"kind": "prompt-lookup", "max_ngram": 2, "max_tokens": 3}
    assert case.prompt == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]
    llama = case_of(replace(NOTHING_SAID, build=None, engine="llamacpp"))
    assert llama.where == Path(sys.executable)
    assert (len(llama.model["vocab"]), llama.configuration["horizon"]) == (10, 4)


def test_own_classes_go_where_the_engine_takes_them() -> None:
    features = {"top_k": 3, "processors": [{"builtin": "prefix-parity"}]}
    given = replace(NOTHING_SAID, features=features, processors=[MINE], stopping=[MINE])
    found = case_of(given).configuration["features"]
    assert found == {"top_k": 3, "processors": [{"builtin": "prefix-parity"}, MINE], "stopping": [MINE]}
    assert features["processors"] == [{"builtin": "prefix-parity"}]
    found = case_of(replace(given, build=None, engine="llamacpp")).configuration["features"]
    assert found["stopping_criteria"] == [MINE]


def test_a_draft_model_is_another_model() -> None:
    case = case_of(replace(NOTHING_SAID, drafter="assistant", prompt="abab", horizon=2))
    assert case.configuration["drafter"]["model"]["seed"] == str(int(case.model["seed"]) + 1)
    assert (case.prompt, case.configuration["horizon"]) == ([0, 1, 0, 1], 2)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "letter": ({"prompt": "abx"}, "a letter that the model has not"),
    "drafter": ({"drafter": "oracle"}, "no drafter 'oracle'"),
    "engine": ({"engine": "vllm"}, "no engine 'vllm'"),
    "build": ({"build": "hf-0"}, "no build 'hf-0'"),
    # The environment of these tests has no engine: that is what they are to run in.
    "nowhere": ({"build": None}, "none of transformers, llama_cpp"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_case_that_is_none_is_refused(name: str) -> None:
    said, text = REFUSED[name]
    with pytest.raises(UsageError, match=text) as caught:
        case_of(replace(NOTHING_SAID, **said))
    assert caught.value.next_step


@pytest.mark.parametrize("said", [{"tolerance": 0.0}, {"tolerance": 1.0}, {"arguments": {"a": 1}}])
def test_an_assertion_of_nothing_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        assert_no_departure(build="hf-5.17.0", **said)


def finding(verdict: str, **fields: Any) -> Finding:
    exact = ExactResult(
        verdict=verdict,  # type: ignore[arg-type]
        reason="a reason",
        tolerance=1e-5,
        tv_lower=fields.get("tv", 0.25),
        tv_upper=fields.pop("tv", 0.25),
        off=(),
        on=(),
        slack_off=0.0,
        slack_on=0.0,
        witness_mass=0.0,
        event="prefix-2",
        event_gap=-0.125,
        event_gap_lower=-0.125,
        event_gap_upper=-0.125,
        proposals=fields.pop("proposals", 7),
        accepted=fields.pop("accepted", 3),
    )
    configuration = case_of(replace(NOTHING_SAID, processors=[MINE])).configuration
    given: dict[str, Any] = {"admission": {}, "path": None, "activity": {}} | fields
    return Finding(exact=exact, configuration=configuration, vocabulary=("a", "b", "c"), **given)


def test_a_departure_shows_the_path_and_what_the_processor_saw() -> None:
    path = {
        "what": "row",
        "outcome": {"tokens": [1, 2], "finish": "length"},
        "prefix": [1],
        "used": [0.25, 0.75, 0.0],
        "expected": [0.5, 0.5, 0.0],
        "saw": [0, 1, 2],
        "should_have_seen": [0, 1],
        "calls": [{"saw": [0, 1]}, {"saw": [0, 1, 2]}],
        "sequential_calls": [{"saw": [0, 1]}],
    }
    text = message(finding("DEPARTS", path=path))
    for part in (
        "DEPARTS: a reason.",
        "hf (hf-5.17.0), prompt-lookup, Mine(bias=2.0)",
        "total variation        0.25",
        "prefix-2, on minus off -0.125",
        "after the prefix       b",
        "the processor saw      a b c\n",
        "it should have seen    a b\n",
        "its calls were         a b; a b c\n",
        "sequentially           a b",
    ):
        assert part in text


def test_a_path_past_a_stop_says_so() -> None:
    path = {
        "what": "stop",
        "detail": "went on past a stop",
        "prefix": [1],
        "outcome": {"tokens": [1, 2]},
        "calls": [{"saw": [0, 1, 2]}],
        "sequential_calls": [{"saw": [0, 1]}],
    }
    text = message(finding("DEPARTS", path=path))
    assert "went on past a stop after  b\n" in text
    assert "its calls were         a b c\n  sequentially           a b" in text


def test_nothing_proposed_comes_with_advice() -> None:
    assert "allow_inconclusive=True" in message(finding("INCONCLUSIVE", proposals=0))
    assert "allow_inconclusive=True" not in message(finding("INCONCLUSIVE"))
    assert "`seconds`" in message(finding("INCONCLUSIVE"))


def test_equality_that_means_nothing_comes_with_advice() -> None:
    text = message(finding("INCONCLUSIVE", tv=0.0, activity={"processor": 0.0}))
    assert "takes no part proves nothing" in text and "`seconds`" not in text
    assert "changed by processor   0 of plain sampling" in text


def test_what_an_assertion_is_about_is_known_with_what_is_left_without_it() -> None:
    builtin = [{"builtin": "prefix-parity"}]
    features = {"top_k": 3, "processors": builtin}
    assert case_of(NOTHING_SAID).without == {}
    # Without own classes it is about each feature; with them the features stand beside.
    given = replace(NOTHING_SAID, features=features)
    assert case_of(given).without == {"top_k": {"processors": builtin}, "processors": {"top_k": 3}}
    case = case_of(replace(given, processors=[MINE], stopping=[MINE]))
    assert case.without == {
        "processor": {**features, "stopping": [MINE]},
        "stopping": {"top_k": 3, "processors": [*builtin, MINE]},
    }


LAW = {Decoded(tokens=(0,), finish=None): 0.5, Decoded(tokens=(1,), finish=None): 0.5}
OTHER = {Decoded(tokens=(0,), finish=None): 0.25, Decoded(tokens=(1,), finish=None): 0.75}


@pytest.mark.parametrize(
    ("without", "accepted", "verdict", "reason"),
    [
        (OTHER, 1, "EQUAL_WITHIN_TOLERANCE", "total variation at most 0"),
        (LAW, 1, "INCONCLUSIVE", "equal, but processor changed nothing"),
        (None, 1, "INCONCLUSIVE", "equal, but whether processor changes anything could not be told"),
        (OTHER, 0, "INCONCLUSIVE", "equal, but no proposed token was accepted"),
    ],
)
def test_equality_needs_a_class_that_acts_and_an_accepted_token(
    monkeypatch: pytest.MonkeyPatch, without: Any, accepted: int, verdict: str, reason: str
) -> None:
    """What the engine returned is given here; tests/engines walk it."""

    def tree() -> Tree:
        leaves = tuple(
            TreeLeaf(choices=(n,), p=(p,), outcome=outcome, proposals=1, accepted=accepted, kinds="t")
            for n, (outcome, p) in enumerate(LAW.items())
        )
        checks = {"replay": {"checked": 1, "ok": True}, "interference": {"checked": 1, "ok": True}}
        return Tree(leaves=leaves, runs=2, unexplored=0.0, admission=checks, seconds=0.0)

    monkeypatch.setattr(assertion, "_walk", lambda *_: Walked(off=tree(), on=tree(), explanation=None))
    laws = {} if without is None else {"processor": without}
    monkeypatch.setattr(plain, "laws_without", lambda *_: laws)
    said: dict[str, Any] = {"processor": f"{__file__}:Mine", "build": "hf-5.17.0"}
    found = assert_no_departure(**said, allow_inconclusive=True)
    assert found.verdict == verdict and found.exact.reason.startswith(reason)
    assert set(found.activity) == set(laws)
    if verdict == "INCONCLUSIVE":
        with pytest.raises(Departure, match=reason):
            assert_no_departure(**said)
    # Without a class and features there is nothing that could change anything.
    alone = assert_no_departure(build="hf-5.17.0", allow_inconclusive=True)
    assert alone.activity == {} and (alone.verdict == "EQUAL_WITHIN_TOLERANCE") == (accepted > 0)


def test_state_that_outlives_a_request_is_named() -> None:
    checks = {"replay": {"ok": False, "differences": [{"choices": [1], "what": "state digest"}]}}
    text = message(finding("VOID", admission={"on": checks, "off": {"ok": True}}))
    assert "on arm, replay: state digest" in text and "outlives a request" in text
    oracle = {"oracle": {"ok": False, "largest": 0.5}}
    assert "outlives a request" not in message(finding("VOID", admission={"off": oracle}))


def test_a_departure_is_an_assertion_error_with_its_finding() -> None:
    found = finding("DEPARTS")
    error = Departure("text", found)
    assert isinstance(error, AssertionError) and error.finding is found
    assert (found.verdict, found.tv, found.off, found.on) == ("DEPARTS", 0.25, (), ())
