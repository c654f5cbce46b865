"""Transformers: both arms' own laws, enumerated through the engine, and what they must say."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from harness.bench import FEATURES, MODEL, PROMPT, configuration
from harness.oracle.naive import canonical
from harness.session import Session
from harness.wire import JobError
from prereg.stats.exact import lower, upper
from tests.engines.hf_environment import hf_python

pytestmark = pytest.mark.engines

ARMS = {
    "off": {"id": "off", "role": "reference", "speculation": False},
    "on": {"id": "on", "role": "test", "speculation": True},
}
ASSISTANT = {"kind": "assistant", "model": MODEL | {"seed": "77"}, "max_tokens": 2}
PEAKED = {"temperature": 0.7, "top_k": 3, "top_p": 0.9, "repetition_penalty": 1.3}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    **{name: (features, {}) for name, features in FEATURES.items()},
    "sequence-bias": ({"sequence_bias": [[[2], 1.5], [[2, 3], -1.0]]}, {}),
    "peaked": (PEAKED, {}),
    "assistant": ({"top_k": 3}, {"drafter": ASSISTANT}),
    "assistant-guidance": ({"top_k": 3, "guidance_scale": 1.5}, {"drafter": ASSISTANT}),
    "assistant-synthid": (FEATURES["synthid"] | {"top_k": 3}, {"drafter": ASSISTANT}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """One arm's tree."""

    leaves: list[dict[str, Any]]
    end: dict[str, Any]

    def law(self) -> dict[str, float]:
        found: dict[str, list[float]] = {}
        for leaf in self.leaves:
            found.setdefault(canonical(leaf["outcome"]), []).append(leaf["weight"])
        return {key: math.fsum(weights) for key, weights in found.items()}


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session(hf_python()) as session:
        yield session


def start(session: Session, name: str) -> None:
    features, change = CASES[name]
    session.ask("open", configuration=configuration(features) | change, model=MODEL, prompt=PROMPT, cwd=None)


def walk(session: Session, **fields: Any) -> Walked:
    leaves: list[dict[str, Any]] = []
    for message in session.stream("choices", **fields):
        if "error" in message:
            raise JobError(message["error"]["code"], message["error"]["message"])
        if "ok" in message:
            return Walked(leaves=leaves, end=message["ok"])
        if "restart" in message:
            leaves.clear()
        else:
            leaves.append(message["leaf"])
    raise AssertionError("no end")


@functools.cache
def walked(session: Session, name: str, arm: str) -> Walked:
    start(session, name)
    return walk(session, arm=ARMS[arm])


def distance(session: Session, name: str) -> float:
    off, on = walked(session, name, "off").law(), walked(session, name, "on").law()
    return math.fsum(abs(off.get(key, 0.0) - on.get(key, 0.0)) for key in off.keys() | on) / 2


@pytest.mark.parametrize("name", CASES)
def test_both_arms_are_admitted(session: Session, name: str) -> None:
    for arm in ARMS:
        checks = walked(session, name, arm).end["admission"]
        assert checks["ok"], checks
        assert checks["restarts"] == [] and checks["interference"]["checked"] > 0
        assert abs(checks["weights"]["sum"] - 1.0) <= 1e-9
        if arm == "off":
            assert checks["oracle"]["largest"] <= 1e-6 and checks["proposals"] == 0
        elif name != "peaked":
            assert checks["proposals"] > 0 and checks["accepted"] > 0 and checks["refill"]["checked"] > 0


@pytest.mark.parametrize("name", ["plain", "min-new-tokens", "sequence-bias", "assistant"])
def test_no_departure(session: Session, name: str) -> None:
    assert distance(session, name) < 1e-6


@pytest.mark.parametrize("name", ["guidance", "synthid", "assistant-guidance", "assistant-synthid"])
def test_a_departure(session: Session, name: str) -> None:
    assert distance(session, name) > 0.01


def test_where_nothing_is_proposed_nothing_is_tested(session: Session) -> None:
    assert walked(session, "peaked", "on").end["admission"]["proposals"] == 0
    assert distance(session, "peaked") < 1e-6


def test_a_stop_string_is_overrun(session: Session) -> None:
    off, on = (walked(session, "stop-string", arm).leaves for arm in ARMS)

    def overrun(leaf: dict[str, Any]) -> bool:
        tokens = leaf["outcome"]["tokens"]
        return any(tokens[at : at + 2] == [2, 3] for at in range(len(tokens) - 2))

    assert math.fsum(leaf["weight"] for leaf in on if overrun(leaf)) > 0.0
    assert not any(overrun(leaf) for leaf in off)


def test_told_leaves_are_what_running_them_gives(session: Session) -> None:
    """Without the shortcut every leaf is run; the law and every weight stay the same."""
    short = walked(session, "min-new-tokens", "on")
    start(session, "min-new-tokens")
    long = walk(session, arm=ARMS["on"], close_last=False)
    assert long.end["runs"] == len(long.leaves) > short.end["runs"]
    assert not any(leaf["closed"] for leaf in long.leaves)
    assert {
        tuple(leaf["choices"]): (leaf["weight"], canonical(leaf["outcome"])) for leaf in short.leaves
    } == {tuple(leaf["choices"]): (leaf["weight"], canonical(leaf["outcome"])) for leaf in long.leaves}


def test_parts_and_bounds(session: Session) -> None:
    whole = walked(session, "plain", "on").law()
    start(session, "plain")
    first = walk(session, arm=ARMS["on"], mode="best-first", budget={"runs": 20})
    assert first.end["runs"] == 20 and 0.0 < first.end["unexplored"] < 0.5
    rest = walk(session, arm=ARMS["on"], prefixes=first.end["frontier"])
    together = Walked(leaves=[*first.leaves, *rest.leaves], end={}).law()
    assert together.keys() == whole.keys()
    assert max(abs(together[key] - whole[key]) for key in whole) < 1e-12


@pytest.mark.parametrize(("name", "what"), [("synthid", "row"), ("stop-string", "stop")])
def test_the_shortest_failing_path_is_explained(session: Session, name: str, what: str) -> None:
    off, on = walked(session, name, "off").law(), walked(session, name, "on")
    departing = [
        leaf
        for leaf in on.leaves
        if abs(on.law()[canonical(leaf["outcome"])] - off.get(canonical(leaf["outcome"]), 0.0)) > 1e-6
    ]
    departing.sort(key=lambda leaf: (len(leaf["choices"]), -leaf["weight"]))
    start(session, name)
    paths = [leaf["choices"] for leaf in departing[:10]]
    path = session.ask("explain", arm=ARMS["on"], choices=paths).ok["path"]
    assert path["what"] == what
    if what == "row":
        assert path["largest"] > 1e-6
        assert path["should_have_seen"] == [*PROMPT, *path["prefix"]]
        # The watermark counts its calls, and looking for candidates has already made some.
        assert any(call["phase"] == "propose" for call in path["calls"])
        assert all(call["phase"] == "verify" for call in path["sequential_calls"])
        assert len(path["calls"]) > len(path["sequential_calls"])
    else:
        assert path["prefix"][-2:] == [2, 3] and path["detail"] == "went on past a stop"


@pytest.mark.parametrize("name", ["stop-string", "assistant"])
def test_draws_agree_with_the_enumerated_law(session: Session, name: str) -> None:
    """2,000 draws; every outcome's two-sided interval at level 1e-6 over all of them holds its mass."""
    law = walked(session, name, "on").law()
    start(session, name)
    seeds = [str(seed) for seed in range(2000)]
    counts: dict[str, int] = {}
    for request in session.ask("draws", arm=ARMS["on"], seeds=seeds, rows=1).requests:
        key = canonical(request["draws"][0]["outcome"])
        counts[key] = counts.get(key, 0) + 1
    assert counts.keys() <= law.keys(), "drawn, but not in the law"
    for key, p in law.items():
        k, level = counts.get(key, 0), 1e-6 / (2 * len(law))
        assert lower(k, len(seeds), level) <= p <= upper(k, len(seeds), level), (key, p, k)


def test_the_engine_is_the_same_afterwards(session: Session) -> None:
    before = session.ask("fingerprint").ok["digest"]
    start(session, "peaked")
    walk(session, arm=ARMS["on"])
    assert session.ask("fingerprint").ok["digest"] == before


@pytest.mark.parametrize(
    ("drafter", "message"),
    [
        ({"kind": "assistant", "max_tokens": 2}, "drafter.model is missing"),
        (ASSISTANT | {"max_ngram": 2}, "drafter.max_ngram is unknown"),
        (ASSISTANT | {"max_tokens": 0}, "drafter.max_tokens"),
        (ASSISTANT | {"model": 3}, "drafter.model is not a model"),
        (ASSISTANT | {"model": MODEL | {"vocab": [*"abcdef", "."]}}, "another vocabulary"),
    ],
)
def test_drafters_that_are_refused(session: Session, drafter: dict[str, Any], message: str) -> None:
    with pytest.raises(JobError, match=message):
        session.ask(
            "open", configuration=configuration({}) | {"drafter": drafter}, model=MODEL, prompt=PROMPT
        )
