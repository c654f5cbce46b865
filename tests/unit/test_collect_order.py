"""In which order the jobs of a collection are handed out."""

from __future__ import annotations

from prereg.collect.executors.base import Job, Opening
from prereg.collect.executors.local import _Waiting
from prereg.model.plan import Shard
from prereg.model.study import Unit


def jobs(*configurations: tuple[str, str]) -> list[Job]:
    """Two jobs for each configuration (id, build), arm by arm."""
    found = []
    for name, build in configurations:
        opening = Opening(build=build, configuration={"id": name}, model=None, prompt=None)
        for arm in ("off", "on"):
            shard = Shard(
                unit=Unit(stage="s", configuration=name, arm=arm),
                index=0,
                first_request=0,
                requests=4,
                rows=1,
                first_seed=0,
            )
            found.append(Job(shard=shard, opening=opening, arm={"id": arm}))
    return found


def one_after_the_other(given: list[Job]) -> list[str]:
    """What a worker alone is handed, to the end."""
    waiting, opened, found = _Waiting(given, lambda job: True), None, []
    while (job := waiting.take(opened)) is not None:
        opened = job.opening
        found.append(f"{job.shard.unit.configuration}.{job.arm['id']}")
    return found


def test_a_build_is_finished_before_another_engine_is_started() -> None:
    given = jobs(("a", "one"), ("b", "two"), ("c", "one"), ("d", "two"))
    assert one_after_the_other(given) == [
        *("a.off", "a.on", "c.off", "c.on"),
        *("b.off", "b.on", "d.off", "d.on"),
    ]


def test_a_worker_with_nothing_open_takes_the_first_in_order() -> None:
    given = jobs(("a", "one"), ("b", "two"))
    waiting = _Waiting(given, lambda job: True)
    assert [waiting.take(None) for _ in given] == given
