"""`kill -9` at every durable step, in its middle, and at any moment; then `collect` again: each draw once.

`KILL_POINTS` says how many points are tried: a few here, 200 in `make faults`. The steps are counted on a run
that is left alone; they are tried in order as far as the number goes, or a seeded choice of them.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "unit"), str(HERE.parent / "tamper")]

import inject  # noqa: E402
import verbs  # noqa: E402
from desk import Desk, copy_of, make_desk  # noqa: E402

POINTS = int(os.environ.get("KILL_POINTS", "12"))
TIMES = 40
"""Moments that are chosen by the clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """A run that was left alone: its study before, its durable steps, and how long it took."""

    desk: Desk
    steps: list[str]
    seconds: float

    def points(self) -> list[tuple[str, float]]:
        """Every point there is: before a step, in the middle of one, or at a moment."""
        numbered = list(enumerate(self.steps, 1))
        before = [("before", float(at)) for at, _ in numbered]
        torn = [("torn", float(at)) for at, name in numbered if name in inject.TORN]
        chance = random.Random(20_261_130)
        times = [("moment", chance.uniform(0, self.seconds)) for _ in range(TIMES)]
        found = [*before, *torn, *times]
        return found if len(found) <= POINTS else sorted(chance.sample(found, POINTS))


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
        yield Course(desk=desk, steps=log.read_text().split(), seconds=time.monotonic() - began)


def killed(desk: Desk, kind: str, at: float, log: Path) -> bool:
    """Collect, and kill it there; whether it was still alive then."""
    if kind == "moment":
        running = desk.start()
        time.sleep(at)
        running.kill()
        done = running.wait()
    else:
        done = desk.collect(partial(inject.arm, log, int(at), torn=kind == "torn"))
    # 4: the run before it had come to the end.
    assert done.code in (-9, 0, 4), done.said
    return done.code == -9


def test_the_steps_are_many(course: Course) -> None:
    assert {"fsync", "replace", "write", "git"} <= {*course.steps}
    assert len(course.steps) > 60


@pytest.mark.parametrize("number", range(POINTS))
def test_every_draw_once(
    number: int, course: Course, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    points = course.points()
    kind, at = points[number % len(points)]
    groups = {
        "before": "kill -9 before a durable step",
        "torn": "kill -9 in the middle of a durable step",
        "moment": "kill -9 at a moment",
    }
    record_property("group", groups[kind])
    desk = copy_of(course.desk, tmp_path / "home")
    try:
        assert killed(desk, kind, at, tmp_path / "log") or kind == "moment"
        if number % 4 == 3:  # a second kill, over what the first one left
            killed(desk, "before", 1 + (at * 7) % len(course.steps), tmp_path / "log")
        done = desk.collect()
        where = f"{kind} {at} {course.steps[int(at) - 1] if kind != 'moment' else ''}"
        # A kill after the last step leaves nothing to do: the study is collected.
        assert done.code in (0, 4), f"{where}\n{done.said}"
        found = desk.faults()
        for name, count in found.items():
            record_property(name, count)
        assert found == {"lost": 0, "doubled": 0}, where
        desk.check_sound()
    finally:
        shutil.rmtree(tmp_path / "home", ignore_errors=True)
