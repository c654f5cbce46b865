"""The observers of the adapters change nothing in any configuration of `main`; one that does is caught."""

from __future__ import annotations

from typing import Any, cast

import pytest

from harness.session import Session
from prereg.collect.observers import compare_observed
from prereg.collect.worker import Worker
from prereg.errors import EngineFailed
from tests.engines.main_template import BUILDS, CONFIGURATIONS, OFF, ON, of_build, start, worker

pytestmark = pytest.mark.engines

SEEDS = range(7_000, 7_025)


class Asking:
    """A session of the tests in the place of a collector's worker."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def call(self, op: str, *, silence: float, **fields: Any) -> Any:
        return self.session.ask(op, **fields).ok


def compare(session: Session, name: str, arm: dict[str, Any]) -> None:
    compare_observed(cast(Worker, Asking(session)), name, arm, SEEDS, 60.0)


def test_the_template_has_twenty_six_configurations() -> None:
    assert len(CONFIGURATIONS) == sum(len(of_build(build)) for build in BUILDS) == 26


@pytest.mark.parametrize("build", BUILDS)
def test_with_and_without_observers_every_request_is_the_same(build: str) -> None:
    with worker(build) as session:
        for name in of_build(build):
            start(session, name)
            for arm in (OFF, ON):
                compare(session, name, arm)


@pytest.mark.parametrize("build", BUILDS)
def test_the_traces_tell_requests_apart(build: str) -> None:
    """Else equality would say nothing: other seeds give other outcomes, and both arms call the model."""
    with worker(build) as session:
        start(session, of_build(build)[0])
        for arm in (OFF, ON):
            seeds = [str(seed) for seed in SEEDS]
            traces = session.ask("trace", arm=arm, seeds=seeds, observed=False).ok["traces"]
            assert len({str(trace["outcome"]) for trace in traces}) > 5
            assert len({trace["calls"] for trace in traces}) > 1
            assert all(trace["calls"] > 0 for trace in traces)
            assert len({trace["state"] for trace in traces}) > 1


# Each plants an observer that does more than observe.
RANDOM_NUMBER_TAKEN = """
import torch
from harness.adapters import hf_intercept
count = hf_intercept._count
def _count(generator, probe):
    torch.rand(1)
    return count(generator, probe)
hf_intercept._count = _count
"""
MODEL_CALLED_ONCE_MORE = """
import torch
from harness.adapters import hf_intercept
observed = hf_intercept.observed
def _observed(base, probe):
    kind = observed(base, probe)
    inner = kind._get_candidate_generator
    def _get_candidate_generator(self, *args, **kwargs):
        self(torch.tensor([[0]]))
        return inner(self, *args, **kwargs)
    kind._get_candidate_generator = _get_candidate_generator
    return kind
hf_intercept.observed = _observed
"""
PROPOSAL_SHORTENED = """
from harness.adapters import llamacpp_observe
observe = llamacpp_observe.observe
def _observe(engine, probe):
    engine = observe(engine, probe)
    inner = engine.draft_model
    if inner is not None:
        engine.draft_model = lambda ids, **kwargs: inner(ids, **kwargs)[:1]
    return engine
llamacpp_observe.observe = _observe
"""


@pytest.mark.parametrize(
    ("name", "prelude", "part"),
    [
        ("hf17-n0", RANDOM_NUMBER_TAKEN, "state"),
        ("hf17-n0", MODEL_CALLED_ONCE_MORE, "calls"),
        ("lcp-n0-35", PROPOSAL_SHORTENED, "calls"),
    ],
)
def test_an_observer_that_meddles_is_caught(name: str, prelude: str, part: str) -> None:
    with worker(CONFIGURATIONS[name]["build"], prelude) as session:
        start(session, name)
        compare(session, name, OFF)
        with pytest.raises(EngineFailed, match=rf"{name}: the counting observers change.*{part}"):
            compare(session, name, ON)
