"""The parts of collection that need no worker: clocks, costs, progress, staging."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_collect_kit import protocol as toy_protocol

from prereg.codec.convert import read_authored
from prereg.collect.ceilings import Clocks, Spent
from prereg.collect.cost import cost_of
from prereg.collect.executors.base import Job, opening_of
from prereg.collect.progress import Cost, Lines, Meter, duration
from prereg.collect.runtime import load_build
from prereg.collect.staging import staged
from prereg.model.law import Events, Predicates
from prereg.model.plan import plan
from prereg.model.predictions import Predictions
from prereg.model.study import Ceilings, Protocol, SeedBlock, Seeds, Study


class Clock:
    """A clock that the test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def study(**changes: Any) -> tuple[Protocol, Seeds]:
    text = json.dumps(toy_protocol("toy", **changes)).encode()
    made = read_authored(text, "protocol", Protocol, where="protocol.json")
    blocks = tuple(
        SeedBlock(id=f"b{i}", role="discovery", unit=u.id, first=str(100 * i), end=str(100 * i + 14))
        for i, u in enumerate(made.units())
    )
    return made, Seeds(study="toy", blocks=blocks)


def jobs() -> list[Job]:
    made, seeds = study()
    arms = {a.id: {"id": a.id} for a in made.arms}
    return [
        Job(
            shard=s,
            opening=opening_of(made, made.configuration(s.unit.configuration)),
            arm=arms[s.unit.arm],
        )
        for s in plan(made, seeds)
    ]


LIMITS = Ceilings(study_seconds=100, unit_seconds=30, request_seconds=5, on_ceiling="INVALID")


def test_a_unit_is_charged_for_worker_seconds_and_the_study_for_wall_clock() -> None:
    clock = Clock()
    clocks = Clocks(LIMITS, clock=clock)
    first, second, *_ = jobs()
    assert first.shard.unit == second.shard.unit
    clocks.start(first)
    clocks.start(second)
    assert clocks.left(first) == 15  # two workers use up 30 seconds in 15
    clock.now += 10
    assert clocks.left(first) == 5
    clocks.stop(first)
    assert clocks.left(second) == 10
    clock.now += 10
    assert clocks.left(second) == 0
    clocks.stop(second)
    assert clocks.study_left() == 80


def test_another_unit_has_its_own_clock_but_the_studys_is_shared() -> None:
    clock = Clock()
    clocks = Clocks(LIMITS, clock=clock)
    one, *rest = jobs()
    other = next(j for j in rest if j.shard.unit != one.shard.unit)
    clocks.start(one)
    clock.now += 25
    clocks.stop(one)
    clocks.start(other)
    assert clocks.left(other) == 30
    clock.now += 71
    assert clocks.left(other) == -41
    assert clocks.study_left() == 4


def test_which_ceiling_was_reached_is_told() -> None:
    clock = Clock()
    clocks = Clocks(LIMITS, clock=clock)
    one = jobs()[0]
    clocks.start(one)
    clock.now += 30
    assert (clocks.left(one), clocks.reached(one)) == (0, "unit-ceiling")
    clock.now += 70
    assert clocks.reached(one) == "study-ceiling"


def test_what_earlier_runs_took_is_charged() -> None:
    one = jobs()[0]
    clocks = Clocks(LIMITS, study_spent=95, unit_spent={one.shard.unit.id: 29}, clock=Clock())
    clocks.start(one)
    assert clocks.left(one) == 1
    assert clocks.study_left() == 5


def test_what_this_run_took_is_told_apart_from_earlier_ones() -> None:
    clock = Clock()
    one, two, *_ = jobs()
    unit = one.shard.unit.id
    clocks = Clocks(LIMITS, study_spent=50, unit_spent={unit: 9}, clock=clock)
    clock.now += 1
    clocks.start(one)
    clocks.start(two)
    clock.now += 2
    clocks.stop(one)
    clock.now += 3
    assert clocks.took() == Spent(study=6, units={unit: 2 + 5})


def test_the_cost_adds_the_rates_of_both_arms() -> None:
    made, seeds = study()
    shards = plan(made, seeds)
    whole = Study(
        protocol=made,
        seeds=seeds,
        events=Events(study="toy", harness_sha256=None, configurations={}),
        predicates=Predicates(study="toy", predicates=()),
        predictions=Predictions(study="toy", predictions=()),
    )
    build = replace(load_build("plain"), requests_per_second={"reference": 10.0, "test": 5.0})
    cost = cost_of(whole, shards, {"plain": build}, workers=2)
    assert (cost.draws, cost.requests) == (112, 56)
    assert cost.seconds == pytest.approx((28 / 10 + 28 / 5) / 2)
    assert str(cost) == "112 draws in 56 requests, about 4 s"
    unknown = replace(build, requests_per_second={"reference": 10.0})
    assert cost_of(whole, shards, {"plain": unknown}, workers=2).seconds is None
    assert str(cost_of(whole, [], {}, workers=2)) == "0 draws in 0 requests, about 0 s"


def test_the_meter_knows_the_rate_and_the_time_left() -> None:
    clock = Clock()
    meter = Meter(clock)
    meter.begin(1000, 400)
    assert (meter.rate(), meter.left()) == (None, None)
    clock.now += 10
    meter.advance(150)
    meter.advance(-50)
    assert (meter.rate(), meter.left()) == (10.0, 50.0)
    assert meter.line() == "500/1,000 draws (50 %), 10 a second, 50 s left"


def test_the_time_left_follows_the_work_and_not_the_draws() -> None:
    clock = Clock()
    meter = Meter(clock)
    meter.begin(1000, 0, 40.0)
    clock.now += 10
    meter.advance(900, 8.0)  # nearly all draws, a fifth of the work
    assert meter.left() == pytest.approx(40.0)
    meter.advance(100, 32.0)
    assert meter.left() == 0.0


def test_lines_are_written_for_people() -> None:
    out = io.StringIO()
    lines = Lines(out, every=0)
    lines.begin(10, 4, Cost(draws=6, requests=6, seconds=None))
    lines.advance(6)
    lines.end()
    first, last = out.getvalue().splitlines()  # the end says nothing twice
    assert first == "4 draws are there; to do: 6 draws in 6 requests, time unknown"
    assert last.startswith("10/10 draws (100 %)")


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0 s"), (89, "89 s"), (200, "3 min"), (7500, "2 h 05 min")]
)
def test_durations(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_staged_files_are_what_was_verified_and_cannot_be_rewritten(tmp_path: Path) -> None:
    files = {"a.txt": b"1", "code/harness/worker.py": b"x", "run.sh": b"#!"}
    with staged(files, frozenset({"run.sh"})) as stage:
        found = {
            p.relative_to(stage.study).as_posix(): p.read_bytes()
            for p in stage.study.rglob("*")
            if p.is_file()
        }
        assert found == files
        assert stage.code == stage.study / "code"
        modes = {n: (stage.study / n).stat().st_mode & 0o777 for n in ("a.txt", "run.sh", "code")}
        assert modes == {"a.txt": 0o444, "run.sh": 0o555, "code": 0o555}
        root = stage.study.parent
    assert not root.exists()
