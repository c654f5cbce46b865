"""Seats that walk one tree together: who may help, what a failure does, and that ceilings hold for each."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

from prereg.collect.ceilings import Clocks
from prereg.collect.executors import crew as crews
from prereg.collect.executors.base import Job, Opening
from prereg.collect.executors.crew import Crew
from prereg.collect.worker import Worker, WorkerLost
from prereg.model.plan import Shard
from prereg.model.study import Ceilings, Unit

CEILINGS = Ceilings(study_seconds=1000, unit_seconds=100, request_seconds=10, on_ceiling="INVALID")


class Caller:
    """The least of a worker: it remembers what a call was given."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def call(self, op: str, **fields: Any) -> str:
        self.calls.append({"op": op, **fields})
        return op


def job() -> Job:
    shard = Shard(
        unit=Unit(stage="walked", configuration="c", arm="on"),
        index=0,
        first_request=0,
        requests=4,
        rows=1,
        first_seed=0,
        channel="exact",
    )
    return Job(
        shard=shard,
        opening=Opening(build="plain", configuration={"id": "c"}, model=None, prompt=None),
        arm={"id": "on"},
        walk={"mode": "full"},
    )


def a_crew(clock: Callable[[], float] = lambda: 0.0) -> tuple[Crew, Caller]:
    clocks = Clocks(CEILINGS, clock=clock)
    crew, owner = Crew(job(), clocks), Caller()
    clocks.start(crew.job)
    crew.owned(cast(Worker, owner))
    return crew, owner


def helping(crew: Crew, worker: Caller) -> threading.Thread:
    def run() -> None:
        with contextlib.suppress(WorkerLost):
            crew.help(cast(Worker, worker))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def test_owner_and_helper_both_walk_under_the_ceilings() -> None:
    crew, owner = a_crew()
    helper = Caller()
    thread = helping(crew, helper)
    both = threading.Barrier(2, timeout=10)

    def serve(worker: Worker) -> None:
        both.wait()
        assert worker.call("choices", budget=1) == "choices"

    crew.every(serve)
    thread.join(10)
    for caller in (owner, helper):
        (call,) = caller.calls
        assert (call["op"], call["budget"]) == ("choices", 1)
        assert call["left"]() == 100.0


def test_a_helper_that_is_lost_loses_the_tree() -> None:
    crew, _ = a_crew()
    owner = threading.current_thread()
    begun = threading.Event()

    def serve(worker: Worker) -> None:
        if threading.current_thread() is owner:
            assert begun.wait(10)
        else:
            begun.set()
            raise WorkerLost("it ended")

    thread = helping(crew, Caller())
    with pytest.raises(WorkerLost, match="it ended"):
        crew.every(serve)
    thread.join(10)


def test_an_owner_that_is_lost_waits_for_its_helpers() -> None:
    crew, _ = a_crew()
    owner = threading.current_thread()
    begun, go, left = threading.Event(), threading.Event(), []

    def serve(worker: Worker) -> None:
        if threading.current_thread() is owner:
            assert begun.wait(10)
            go.set()
            raise WorkerLost("it ended")
        begun.set()
        assert go.wait(10)
        left.append(worker)

    thread = helping(crew, Caller())
    with pytest.raises(WorkerLost):
        crew.every(serve)
    assert len(left) == 1
    thread.join(10)


def test_nobody_helps_once_it_is_over() -> None:
    crew, _ = a_crew()
    crew.every(lambda worker: None)
    late = Caller()
    crew.help(cast(Worker, late))
    assert late.calls == []
    assert not crew.wants(7)
    assert not crew.lasts()


def test_a_helper_that_waits_goes_when_the_tree_never_begins() -> None:
    crew, _ = a_crew()
    thread = helping(crew, Caller())
    crew.close()
    thread.join(10)
    assert not thread.is_alive()


def test_each_seat_is_asked_once() -> None:
    crew, _ = a_crew()
    assert crew.wants(1)
    assert not crew.wants(1)
    assert crew.wants(2)


def test_a_walk_that_is_soon_over_is_not_helped(monkeypatch: pytest.MonkeyPatch) -> None:
    crew, _ = a_crew()
    monkeypatch.setattr(crews, "HELP_AFTER", 0.05)
    assert crew.lasts()
    monkeypatch.setattr(crews, "HELP_AFTER", 30.0)
    threading.Timer(0.05, crew.close).start()
    assert not crew.lasts()


def test_every_worker_at_a_unit_spends_its_time() -> None:
    now = [0.0]
    clocks = Clocks(CEILINGS, clock=lambda: now[0])
    one = job()
    clocks.start(one)
    now[0] = 10.0
    clocks.start(one)
    now[0] = 20.0
    assert clocks.left(one) == (100 - 20 - 10) / 2
    clocks.stop(one)
    now[0] = 30.0
    assert clocks.left(one) == 100 - 20 - 10 - 10
    clocks.stop(one)
    now[0] = 50.0
    assert clocks.left(one) == 60.0
