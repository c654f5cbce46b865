"""llama-cpp-python: both arms' own laws, enumerated through the engine, and what they must say."""

from __future__ import annotations

import functools
import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.oracle.naive import canonical
from harness.session import Session
from harness.wire import UNSUPPORTED, JobError
from prereg.stats.exact import lower, upper
from tests.engines import lcp_environment as lcp
from tests.engines.lcp_environment import EOS, ON, PARITY, PROMPT, Walked, departing, distance, walk

pytestmark = pytest.mark.engines

COMPLETION = {"api": "create_completion"}
OWN = str(Path(__file__).with_name("lcp_processors.py"))


def own(name: str, **arguments: Any) -> list[dict[str, Any]]:
    return [{"file": OWN, "class": name, "arguments": arguments}]


EQUAL: dict[str, dict[str, Any]] = {
    "plain": {},
    "temperature below zero": {"temp": -1.0},
    "truncated": {"temp": 0.7, "top_k": 5, "top_p": 0.9, "min_p": 0.05, "typical_p": 0.95},
    "top k": {"top_k": 4},
    "nucleus": {"top_p": 0.7},
    "minimum of probability": {"min_p": 0.3},
    "typical": {"typical_p": 0.5},
    "penalties": {"repeat_penalty": 1.5, "frequency_penalty": 0.5, "presence_penalty": 0.3},
    "grammar": {"grammar": "root ::= [a-c] [d-f] root | [a-c]"},
    "counting calls": {"processors": own("Counting", step=1.5)},
    "completion": COMPLETION,
    "logit bias": {**COMPLETION, "logit_bias": {"3": 1.5, "9": -2}},
    "stop strings": {**COMPLETION, "stop": ["cd", "g"]},
}
DEPARTING: dict[str, dict[str, Any]] = {
    "minimum": {"min_tokens": 2},
    "minimum of a completion": {**COMPLETION, "min_tokens": 2},
    "parity": PARITY,
    "last token": {"processors": own("Last")},
    "stopping criterion": {**COMPLETION, "stopping_criteria": own("StopAt", length=len(PROMPT) + 3)},
}
HORIZONS = {"stopping criterion": 2}


@pytest.fixture(scope="module", params=lcp.VERSIONS)
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    with Session(lcp.lcp_python(request.param)) as session:
        yield session


def start(session: Session, name: str) -> None:
    lcp.start(session, (EQUAL | DEPARTING)[name], HORIZONS.get(name, 3))


@functools.cache
def walked(session: Session, name: str, arm: str) -> Walked:
    start(session, name)
    return walk(session, arm)


def admit(off: Walked, on: Walked) -> None:
    for checks in (off.checks, on.checks):
        assert checks["ok"], checks
        assert checks["restarts"] == [] and checks["interference"]["checked"] > 0
        assert abs(checks["weights"]["sum"] - 1.0) <= 1e-9
    assert off.checks["oracle"]["largest"] <= 1e-6 and off.checks["proposals"] == 0
    assert on.checks["proposals"] > 0 and on.checks["accepted"] > 0


@pytest.mark.parametrize("name", EQUAL)
def test_no_departure(session: Session, name: str) -> None:
    off, on = walked(session, name, "off"), walked(session, name, "on")
    admit(off, on)
    assert distance(off, on) < 1e-6


@pytest.mark.parametrize("name", DEPARTING)
def test_a_departure_is_found_and_explained(session: Session, name: str) -> None:
    off, on = walked(session, name, "off"), walked(session, name, "on")
    admit(off, on)
    assert distance(off, on) > 1e-3
    start(session, name)
    path = session.ask("explain", arm=ON, choices=departing(off, on)).ok["path"]
    if name == "stopping criterion":
        # The rule is asked once more in the end, and then sees the proposal that was not rolled back.
        assert path["what"] == "returned"
        assert (path["outcome"]["finish"], path["expected"]["finish"]) == ("stop", "length")
        return
    assert path["what"] == "row" and path["largest"] > 1e-6
    assert path["should_have_seen"] == [*PROMPT, *path["prefix"]]
    seen = path["saw"]
    assert seen[: len(path["should_have_seen"])] == path["should_have_seen"]
    assert len(seen) > len(path["should_have_seen"]), "the buffer holds the proposal"


def test_the_template_at_its_own_horizon() -> None:
    """V = 10 and L = 4: 7,381 outcomes, every one of them on both arms."""
    with Session(lcp.lcp_python()) as session:
        lcp.start(session, {})
        off, on = walk(session, "off"), walk(session, "on")
        admit(off, on)
        assert distance(off, on) < 1e-6
        assert len(off.leaves) == len(on.leaves) == 7381
        assert off.end["runs"] < on.end["runs"] < 7381
        lcp.start(session, {"min_tokens": 3})
        off, on = walk(session, "off"), walk(session, "on")
        admit(off, on)
        assert distance(off, on) > 0.05
        short = math.fsum(leaf["weight"] for leaf in on.leaves if EOS in leaf["outcome"]["tokens"][:3])
        assert short == pytest.approx(distance(off, on), abs=1e-6), "all of it is too short"
        assert not any(EOS in leaf["outcome"]["tokens"][:3] for leaf in off.leaves)


def test_told_leaves_are_what_running_them_gives(session: Session) -> None:
    short = walked(session, "parity", "on")
    start(session, "parity")
    long = walk(session, "on", close_last=False)
    assert long.end["runs"] == len(long.leaves) > short.end["runs"]
    weights = [
        {tuple(leaf["choices"]): (leaf["weight"], canonical(leaf["outcome"])) for leaf in found.leaves}
        for found in (short, long)
    ]
    assert weights[0] == weights[1]


def test_parts_and_bounds(session: Session) -> None:
    whole = walked(session, "plain", "on").law()
    start(session, "plain")
    first = walk(session, "on", mode="best-first", budget={"runs": 20})
    assert first.end["runs"] == 20 and 0.0 < first.end["unexplored"] < 0.9
    rest = walk(session, "on", prefixes=first.end["frontier"])
    together = Walked(leaves=[*first.leaves, *rest.leaves], end={}).law()
    assert together.keys() == whole.keys()
    assert max(abs(together[key] - whole[key]) for key in whole) < 1e-12


@pytest.mark.parametrize("arm", ["off", "on"])
def test_draws_agree_with_the_enumerated_law(session: Session, arm: str) -> None:
    """2,000 draws; every outcome's two-sided interval at level 1e-6 over all of them holds its mass."""
    law = walked(session, "parity", arm).law()
    start(session, "parity")
    seen = Counter(canonical(draw["outcome"]) for draw in lcp.drawn(session, arm, range(2000)))
    assert seen.keys() <= law.keys()
    level = 1e-6 / (2 * len(law))
    for key, mass in law.items():
        assert lower(seen[key], 2000, level) <= mass + 1e-6 and mass - 1e-6 <= upper(seen[key], 2000, level)


def test_where_nothing_is_drawn_there_is_one_path(session: Session) -> None:
    lcp.start(session, {"temp": 0.0})
    off, on = walk(session, "off"), walk(session, "on")
    assert len(off.leaves) == len(on.leaves) == 1 and distance(off, on) == 0.0
    assert off.checks["ok"] and on.checks["ok"] and off.checks["oracle"] is None


def test_a_sampler_that_draws_by_itself_is_refused(session: Session) -> None:
    lcp.start(session, {"mirostat_mode": 2})
    assert lcp.drawn(session, "on", range(3))
    for ask in (lambda: walk(session, "on"), lambda: session.ask("law")):
        with pytest.raises(JobError, match="Mirostat") as caught:
            ask()
        assert caught.value.code == UNSUPPORTED


def test_state_that_outlives_a_request_is_not_admitted(session: Session) -> None:
    lcp.start(session, {"processors": own("Forgetful")}, 2)
    checks = walk(session, "on").checks
    assert not checks["ok"] and not checks["replay"]["ok"]


def test_both_engines_draw_from_the_same_model() -> None:
    """The template's model has the same weights in Transformers, and so the same law."""
    from tests.engines.hf_environment import hf_python

    laws, digests = [], []
    for python, adapter in ((lcp.lcp_python(), "llamacpp"), (hf_python(), "hf")):
        with Session(python) as session:
            digests.append(lcp.start(session, {}, configuration=lcp.configuration({}, 3, adapter=adapter)))
            laws.append(
                {json.dumps(entry["outcome"]["tokens"]): entry["p"] for entry in session.ask("law").ok["law"]}
            )
    assert digests[0] == digests[1]
    assert laws[0].keys() == laws[1].keys()
    assert max(abs(laws[0][key] - laws[1][key]) for key in laws[0]) < 1e-5
