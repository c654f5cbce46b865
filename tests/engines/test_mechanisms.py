"""Mechanism hypotheses on the real engines: each is the law of the engine's own on arm, or it is none.

For every hypothesis: with its switch the sequential law to 1e-12 (paper, Supplement C); without it the law
that the engine's runs have, enumerated, within 1e-6; and the very calls of the processors that they made.
"""

from __future__ import annotations

import functools
import json
import math
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.bench import FEATURES, MODEL, PROMPT
from harness.bench import configuration as hf_configuration
from harness.oracle.naive import canonical
from harness.session import Session
from harness.wire import JobError
from prereg.collect.runtime import environment_of, interpreter
from prereg.store.layout import harness_root

pytestmark = pytest.mark.engines

GRAMMAR = "root ::= ([a-f] [a-cef])*"
"""Any token, then any but d, and so on: a matcher that is out of step shows."""

LETTERS = [*"abcdefghi", "<eos>"]
LLAMA = MODEL | {"vocab": LETTERS, "eos": 9}
CRITERION = """
class LastId:
    def __init__(self, token):
        self.token = token

    def __call__(self, input_ids, logits):
        return bool(input_ids[-1] == self.token)
"""
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "guidance": ("H-D2-cfg", "hf-5.17.0", FEATURES["guidance"]),
    "synthid": ("H-D2-synthid", "hf-5.17.0", FEATURES["synthid"]),
    "grammar": (
        "H-D2-xgr",
        "hf-5.17.0-xgrammar-0.2.8",
        {"processors": [{"builtin": "xgrammar", "grammar": GRAMMAR}]},
    ),
    "stop-string": ("H-D3-block", "hf-5.17.0", FEATURES["stop-string"]),
    **{
        f"{name}-{version}": (hypothesis, f"lcp-0.3.{version}", {"api": "create_completion"} | features)
        for version in (19, 35)
        for name, hypothesis, features in (
            ("parity", "H-D1-phys", {"processors": [{"builtin": "prefix-parity"}]}),
            ("minimum", "H-D1-phys", {"min_tokens": 3}),
            ("criterion", "H-D3-postcheck", {"stopping_criteria": "LastId"}),
        )
    },
}
"""Name: hypothesis, build, features."""

ON = {"id": "on", "role": "test", "speculation": True}

Law = dict[str, float]


def opening(build: str, features: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """What `open` is asked with."""
    if build.startswith("hf-"):
        return {"configuration": hf_configuration(dict(features)), "model": MODEL, "prompt": PROMPT}
    given = dict(features)
    if given.get("stopping_criteria") == "LastId":
        (folder / "criterion.py").write_text(CRITERION)
        given["stopping_criteria"] = [
            {"file": str(folder / "criterion.py"), "class": "LastId", "arguments": {"token": 3}}
        ]
    configuration = hf_configuration(given, 4) | {
        "build": build,
        "adapter": "llamacpp",
        "drafter": {"kind": "prompt-lookup", "max_ngram": 2, "max_tokens": 4},
    }
    return {"configuration": configuration, "model": LLAMA, "prompt": PROMPT}


@contextmanager
def opened(name: str, folder: Path) -> Iterator[Session]:
    """A worker with the case's configuration open."""
    _, build, features = CASES[name]
    with Session(str(interpreter(environment_of(build)))) as session:
        session.ask("open", cwd=None, **opening(build, features, folder))
        yield session


def law(session: Session, op: str, **fields: Any) -> Law:
    return {canonical(m["outcome"]): m["p"] for m in session.ask(op, **fields).ok["law"]}


def enumerated(session: Session) -> Law:
    """The on arm's own law, from all runs of the engine."""
    found: dict[str, list[float]] = {}
    for message in session.stream("choices", arm=ON):
        assert "error" not in message, message
        if "restart" in message:
            found.clear()
        elif "leaf" in message:
            leaf = message["leaf"]
            found.setdefault(canonical(leaf["outcome"]), []).append(leaf["weight"])
        else:
            assert message["ok"]["unexplored"] == 0.0
            return {key: math.fsum(weights) for key, weights in found.items()}
    raise AssertionError("no end")


def gap(a: Law, b: Law) -> float:
    return max(abs(a.get(key, 0.0) - b.get(key, 0.0)) for key in a.keys() | b.keys())


def distance(a: Law, b: Law) -> float:
    return math.fsum(max(0.0, a.get(key, 0.0) - b.get(key, 0.0)) for key in a.keys() | b.keys())


@functools.cache
def laws(name: str, folder: Path) -> tuple[Law, Law, Law, Law]:
    """P by the slow oracle; the hypothesis with and without its switch; the engine's own."""
    hypothesis = CASES[name][0]
    with opened(name, folder) as session:
        return (
            law(session, "law", naive=True),
            law(session, "mechanism", hypothesis=hypothesis, logical=True),
            law(session, "mechanism", hypothesis=hypothesis),
            enumerated(session),
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("criterion")


@pytest.mark.parametrize("name", CASES)
def test_with_every_read_logical_a_hypothesis_is_the_sequential_law(name: str, folder: Path) -> None:
    sequential, switched, _, _ = laws(name, folder)
    assert gap(sequential, switched) <= 1e-12


@pytest.mark.parametrize("name", CASES)
def test_a_hypothesis_is_the_law_of_the_engine_under_speculation(name: str, folder: Path) -> None:
    sequential, _, hypothesis, engine = laws(name, folder)
    assert distance(hypothesis, engine) <= 1e-6
    assert distance(sequential, engine) > 1e-3, "there is nothing to explain"


@pytest.mark.parametrize("name", ["guidance", "synthid", "grammar"])
def test_the_engine_makes_the_calls_that_a_hypothesis_says(name: str, folder: Path) -> None:
    hypothesis, build, features = CASES[name]
    given = opening(build, features, folder)
    done = subprocess.run(
        [
            str(interpreter(environment_of(build))),
            str(Path(__file__).with_name("mechanism_calls.py")),
            str(harness_root().parent),
            hypothesis,
            *(json.dumps(given[part]) for part in ("configuration", "model", "prompt")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found["runs"] > 20
    assert found["differ"] == 0, found["wrong"]
    # "ab" was followed by "cda": seven calls in a round, where sequential decoding makes one.
    if name == "guidance":
        assert found["shortest"][:4] == [
            ["propose", []],
            ["propose", [2]],
            ["propose", [2, 3]],
            ["verify", []],
        ]


def test_a_grammar_that_is_out_of_step_crashes_requests_or_changes_them(folder: Path) -> None:
    sequential, _, hypothesis, _ = laws("grammar", folder)
    crash = '{"crash":"AssertionError"}'
    assert hypothesis[crash] > 0.01 and crash not in sequential
    assert distance(hypothesis, sequential) > hypothesis[crash] + 0.01


def test_a_hypothesis_refuses_a_configuration_that_it_does_not_speak_of(folder: Path) -> None:
    with opened("guidance", folder) as session:
        for name, message in (
            ("H-D2-synthid", "no SynthIDTextWatermarkLogitsProcessor"),
            ("H-D1-phys", "H-D1-phys speaks of another engine"),
            ("H-D3-postcheck", "H-D3-postcheck belongs to another engine"),
            ("H-D9", "no hypothesis 'H-D9'; there are: H-D1-phys"),
        ):
            with pytest.raises(JobError, match=message):
                session.ask("mechanism", hypothesis=name)


def test_a_rule_asked_once_a_block_explains_the_overshoot_of_an_earlier_version(folder: Path) -> None:
    """Transformers 5.12.0 does not cut a block at the horizon: all that it adds to the law is too long."""
    with Session(str(interpreter(environment_of("hf-5.12.0")))) as session:
        session.ask("open", cwd=None, **opening("hf-5.12.0", {}, folder))
        sequential, engine = law(session, "law", naive=True), enumerated(session)
        schedule = law(session, "mechanism", hypothesis="H-D3-block")
    assert distance(schedule, engine) <= 1e-6
    longer = {key: p for key, p in engine.items() if len(json.loads(key)["tokens"]) > 3}
    assert len(longer) == 21, "after a, b or d: two proposed tokens, and any of the seven"
    assert distance(engine, sequential) == pytest.approx(math.fsum(longer.values()), abs=1e-6)


@pytest.mark.parametrize(
    ("build", "features", "records"),
    [
        ("hf-5.17.0", {}, {"output_scores": True}),
        ("lcp-0.3.19", {"api": "create_completion"}, {"logprobs": 10}),
        ("lcp-0.3.35", {"api": "create_completion"}, {"logprobs": 10}),
    ],
)
def test_a_request_that_asks_for_records_draws_the_same(
    build: str, features: dict[str, Any], records: dict[str, Any], folder: Path
) -> None:
    seen = []
    with Session(str(interpreter(environment_of(build)))) as session:
        for given in (features, features | records):
            session.ask("open", cwd=None, **opening(build, given, folder))
            seeds = [str(seed) for seed in range(40)]
            arms = (ON, ON | {"id": "off", "role": "reference", "speculation": False})
            seen.append([session.ask("draws", arm=arm, seeds=seeds, rows=1).requests for arm in arms])
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    ("build", "entry", "message"),
    [
        ("hf-5.17.0", {"builtin": "xgrammar", "grammar": GRAMMAR}, "no xgrammar .*hf-5.17.0-xgrammar-0.2.8"),
        ("hf-5.17.0", {"builtin": "parity"}, r"processors\[0\] is not a builtin; there is: xgrammar"),
        ("hf-5.17.0-xgrammar-0.2.8", {"builtin": "xgrammar"}, "the text of a grammar"),
        ("hf-5.17.0-xgrammar-0.2.8", {"builtin": "xgrammar", "grammar": "root ::= ("}, "cannot be compiled"),
    ],
)
def test_a_builtin_that_there_is_not_is_refused(
    build: str, entry: dict[str, Any], message: str, folder: Path
) -> None:
    with (
        Session(str(interpreter(environment_of(build)))) as session,
        pytest.raises(JobError, match=message),
    ):
        session.ask("open", cwd=None, **opening(build, {"processors": [entry]}, folder))
