"""Transformers 5.17.0: the enumerated law is the law of the off arm, and its two enumerations agree."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from scipy.stats import beta

from harness.bench import FEATURES, MODEL, PROMPT, configuration
from harness.session import Session
from harness.wire import JobError
from tests.engines.hf_environment import hf_python

pytestmark = pytest.mark.engines

OFF = {"id": "off", "role": "reference", "speculation": False}
ON = {"id": "on", "role": "test", "speculation": True}
CASES = FEATURES | {
    "sequence-bias": {"sequence_bias": [[[2], 1.5], [[2, 3], -1.0]]},
    "warpers": {"temperature": 0.7, "top_k": 3, "top_p": 0.9, "repetition_penalty": 1.3},
    "two-stop-strings": {"stop_strings": ["cd", "b"], "no_repeat_ngram_size": 2},
}
LEVEL = 1e-7
"""Of each two-sided interval. The seeds are fixed, so a failure is a fault and not bad luck."""


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session(hf_python()) as session:
        yield session


def start(session: Session, features: dict[str, Any], horizon: int = 3) -> None:
    session.ask("open", configuration=configuration(features, horizon), model=MODEL, prompt=PROMPT, cwd=None)


def law(session: Session, **fields: Any) -> dict[str, float]:
    return {key(entry["outcome"]): entry["p"] for entry in session.ask("law", **fields).ok["law"]}


def key(outcome: dict[str, Any]) -> str:
    return json.dumps(outcome, sort_keys=True)


def sample(session: Session, arm: dict[str, Any], requests: int, rows: int) -> Counter[str]:
    seeds = [str(7_000_000 + seed) for seed in range(requests)]
    reply = session.ask("draws", arm=arm, seeds=seeds, rows=rows)
    return Counter(key(draw["outcome"]) for request in reply.requests for draw in request["draws"])


def inside(count: int, n: int, p: float) -> bool:
    """Whether p lies in the Clopper-Pearson interval of count out of n."""
    low = 0.0 if count == 0 else float(beta.ppf(LEVEL / 2, count, n - count + 1))
    high = 1.0 if count == n else float(beta.ppf(1 - LEVEL / 2, count + 1, n - count))
    return low - 1e-6 <= p <= high + 1e-6


@pytest.mark.parametrize("horizon", [1, 3])
@pytest.mark.parametrize("name", CASES)
def test_the_twins_agree(session: Session, name: str, horizon: int) -> None:
    start(session, CASES[name], horizon)
    fast, slow = law(session), law(session, naive=True)
    assert fast.keys() == slow.keys()
    # Float32 kernels may round a batch of rows otherwise than one row; nothing else may differ.
    assert max(abs(fast[outcome] - slow[outcome]) for outcome in fast) < 1e-6
    assert math.isclose(math.fsum(fast.values()), 1.0, abs_tol=1e-9)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("requests", "rows"), [(8, 2500), (600, 1)])
def test_the_off_arm_draws_from_the_law(session: Session, name: str, requests: int, rows: int) -> None:
    start(session, CASES[name])
    expected = law(session)
    seen = sample(session, OFF, requests, rows)
    n = requests * rows
    assert seen.total() == n
    assert seen.keys() <= expected.keys(), "the engine returned what the law says it cannot"
    wrong = [outcome for outcome, p in expected.items() if not inside(seen[outcome], n, p)]
    assert not wrong
    for length in (1, 2):
        prefixes: dict[tuple[int, ...], list[str]] = {}
        for outcome in expected:
            tokens = json.loads(outcome)["tokens"]
            prefixes.setdefault(tuple(tokens[:length]), []).append(outcome)
        for members in prefixes.values():
            count = sum(seen[outcome] for outcome in members)
            assert inside(count, n, math.fsum(expected[outcome] for outcome in members))


def test_the_law_of_a_stop_string_ends_there(session: Session) -> None:
    start(session, CASES["stop-string"])
    outcomes = [json.loads(outcome) for outcome in law(session)]
    stopped = [outcome for outcome in outcomes if outcome["finish"] == "stop"]
    assert {"tokens": [2, 3], "finish": "stop"} in stopped
    assert all(outcome["tokens"][-2:] == [2, 3] for outcome in stopped)
    assert not any(outcome["tokens"][:2] == [2, 3] and len(outcome["tokens"]) > 2 for outcome in outcomes)
    # abcdabcdab ends in "ab": a stop string that began in the prompt counts as the engine counts it.
    start(session, {"stop_strings": ["bc"]})
    assert {"tokens": [2], "finish": "stop"} in [json.loads(outcome) for outcome in law(session)]


def test_the_law_of_min_new_tokens_has_no_early_end(session: Session) -> None:
    start(session, CASES["min-new-tokens"])
    assert all(6 not in json.loads(outcome)["tokens"][:2] for outcome in law(session))


def test_a_stateful_processor_is_replayed_from_the_start(session: Session) -> None:
    """A row of SynthID depends on the calls before it; that the off arm agrees is tested above."""
    start(session, CASES["synthid"])
    synthid = law(session)
    start(session, CASES["plain"])
    plain = law(session)
    assert sum(abs(synthid.get(outcome, 0.0) - p) for outcome, p in plain.items()) > 0.1


@pytest.mark.parametrize(
    ("name", "requests", "gap"),
    [
        ("plain", 2000, False),
        ("min-new-tokens", 1000, False),
        ("guidance", 600, True),
        ("synthid", 600, True),
    ],
)
def test_what_speculation_does_to_the_law_of_the_first_token(
    session: Session, name: str, requests: int, gap: bool
) -> None:
    """The faults that the method is there to find are found here, and only where they are."""
    start(session, CASES[name])
    expected = law(session)
    seen = sample(session, ON, requests, 1)
    firsts: dict[int, float] = {}
    counts: Counter[int] = Counter()
    for outcome, p in expected.items():
        first = json.loads(outcome)["tokens"][0]
        firsts[first] = firsts.get(first, 0.0) + p
    for outcome, count in seen.items():
        counts[json.loads(outcome)["tokens"][0]] += count
    outside = [first for first in firsts if not inside(counts[first], requests, firsts[first])]
    assert bool(outside) == gap


def test_a_stop_string_has_witnesses_on_the_on_arm(session: Session) -> None:
    start(session, CASES["stop-string"])
    expected = law(session)
    seen = sample(session, ON, 300, 1)
    witnesses = sum(
        count
        for outcome, count in seen.items()
        if json.loads(outcome)["tokens"][:2] == [2, 3] and outcome not in expected
    )
    assert witnesses > 30


def test_greedy_decoding_has_no_multinomial_law(session: Session) -> None:
    start(session, {"do_sample": False, "temperature": None, "top_k": None, "top_p": None})
    with pytest.raises(JobError) as caught:
        law(session)
    assert caught.value.code == "unsupported"
