"""`kill -9` at every durable step, in its middle, and at any moment; then `collect` again: each draw once.

`KILL_POINTS` says how many points are tried: a few here, 200 in `make faults`. The steps are counted on a run
that is left alone. No point is tried twice: where a collection has fewer steps, the others are moments, and a
moment at which nothing ran any more is drawn again, so that every kill that is counted was one.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "unit"), str(HERE.parent / "tamper")]

import inject  # noqa: E402
import verbs  # noqa: E402
from desk import Desk, copy_of, make_desk  # noqa: E402

POINTS = int(os.environ.get("KILL_POINTS", "12"))
TIMES = 40
"""Moments that are chosen by the clock, at least."""
TRIES = 6
"""Draws of one moment, each before the one that came too late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """A run that was left alone: its study before, its durable steps, and how long it took."""

    desk: Desk
    steps: list[str]
    seconds: float

    def points(self) -> list[tuple[str, int]]:
        """`POINTS` different ones: before the n-th step, in the middle of it, or the n-th moment."""
        numbered = list(enumerate(self.steps, 1))
        before = [("before", at) for at, _ in numbered]
        torn = [("torn", at) for at, name in numbered if name in inject.TORN]
        moments = max(TIMES, POINTS - len(before) - len(torn))
        found = [*before, *torn, *(("moment", n) for n in range(moments))]
        assert len(found) == len({*found})
        return sorted(random.Random(20_261_130).sample(found, POINTS))


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Course]:
    builds = tmp_path_factory.mktemp("builds")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREREG_CACHE", str(builds))
        assert verbs.prereg("build", "plain").code == 0
        desk = make_desk(tmp_path_factory.mktemp("sealed") / "home", builds)
        alone = copy_of(desk, tmp_path_factory.mktemp("alone") / "home")
        log = tmp_path_factory.mktemp("log") / "steps"
        began = time.monotonic()
        done = alone.collect(partial(inject.arm, log))
        assert done.code == 0, done.said
        own = {"steps": log.read_text().split(), "seconds": time.monotonic() - began}
        yield Course(desk=desk, **agreed(own, tmp_path_factory))


def agreed(own: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the first process of this run of the tests measured: all of them number the same points."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return own
    place = tmp_path_factory.getbasetemp()
    (place / "course.json").write_text(json.dumps(own))
    shared = place.parent / "course.json"
    with contextlib.suppress(FileExistsError):
        shared.hardlink_to(place / "course.json")
    found: dict[str, Any] = json.loads(shared.read_text())
    return found


def killed(desk: Desk, kind: str, at: int, log: Path) -> bool:
    """Collect, and kill it at a step; whether it came so far."""
    done = desk.collect(partial(inject.arm, log, at, kind))
    # 4: the run before it had come to the end.
    assert done.code in (-9, 0, 4), done.said
    return done.code == -9


def killed_at_a_moment(course: Course, number: int, place: Path) -> Desk:
    """A study in `place` whose collection was killed while it ran, at a moment that `number` chooses."""
    chance, latest, missed = random.Random(number), course.seconds, []
    for _ in range(TRIES):
        desk = copy_of(course.desk, place)
        at = chance.uniform(0, latest)
        running = desk.start()
        time.sleep(at)
        running.kill()
        done = running.wait()
        if done.code == -9:
            return desk
        assert done.code == 0, done.said
        # It had ended by then: a draw that is late once is not late for ever.
        latest = at
        missed.append(at)
        shutil.rmtree(place)
    raise AssertionError(f"moment {number}: nothing ran any more after {missed} seconds")


def test_the_steps_are_many(course: Course) -> None:
    assert {"fsync", "replace", "write", "git"} <= {*course.steps}
    assert len(course.steps) > 60


@pytest.mark.parametrize("number", range(POINTS))
def test_every_draw_once(
    number: int, course: Course, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    kind, at = course.points()[number]
    groups = {
        "before": "kill -9 before a durable step",
        "torn": "kill -9 in the middle of a durable step",
        "moment": "kill -9 at a moment",
    }
    record_property("group", groups[kind])
    try:
        if kind == "moment":
            desk = killed_at_a_moment(course, at, tmp_path / "home")
        else:
            desk = copy_of(course.desk, tmp_path / "home")
            assert killed(desk, kind, at, tmp_path / "log")
        if number % 4 == 3:  # a second kill over what the first one left, where it comes so far; not counted
            killed(desk, "before", 1 + (at * 7) % len(course.steps), tmp_path / "log")
        done = desk.collect()
        where = f"{kind} {at} {course.steps[at - 1] if kind != 'moment' else ''}"
        # A kill after the last step leaves nothing to do: the study is collected.
        assert done.code in (0, 4), f"{where}\n{done.said}"
        found = desk.faults()
        for name, count in found.items():
            record_property(name, count)
        assert found == {"lost": 0, "doubled": 0}, where
        desk.check_sound()
    finally:
        shutil.rmtree(tmp_path / "home", ignore_errors=True)
