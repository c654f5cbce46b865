"""`kill -9` at seeded places, then `collect` again: every sealed draw once, no seed twice."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest
from test_collect_kit import Desk, check_whole, collect_process, fresh_desk, make_study, types_of

SHARDS = 8

# Kills the process at the N-th call of one function: before it, or (for a write) after half of its bytes.
KILLER = """
import os, signal, threading
from pathlib import Path
count = 0
def at_last(function, half):
    def called(*given):
        global count
        if threading.current_thread() is not threading.main_thread():
            return function(*given)
        count += 1
        if count == {nth}:
            if half:
                function(given[0], bytes(given[1])[: len(given[1]) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*given)
    return called
from prereg.collect import runner
def armed(*given):
    {place} = at_last({place}, {half})
    return LocalExecutor(*given)
from prereg.collect.executors.local import LocalExecutor
collect_study.__kwdefaults__["executor"] = armed
"""

PLACES = [
    ("os.fsync", False),
    ("os.write", True),
    ("os.write", False),
    ("Path.replace", False),
    ("os.close", False),
]


def points() -> list[tuple[str, bool, int]]:
    """Ten seeded places; the sizes are about how many calls one run makes."""
    chance = random.Random(20_261_129)
    sizes = {"os.fsync": 45, "os.write": 9, "Path.replace": 17, "os.close": 30}
    return [(place, half, chance.randint(1, sizes[place])) for place, half in PLACES for _ in range(2)]


@pytest.fixture
def desk(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return fresh_desk(tmp_path, tmp_path_factory, monkeypatch)


def killed(desk: Desk, place: str, half: bool, nth: int) -> bool:
    process = collect_process(desk, before=KILLER.format(place=place, half=half, nth=nth))
    _, error = process.communicate(timeout=120)
    assert process.returncode in (-signal.SIGKILL, 0), error
    return process.returncode != 0


@pytest.mark.parametrize(("place", "half", "nth"), points())
def test_every_draw_once_after_a_kill(desk: Desk, place: str, half: bool, nth: int) -> None:
    sampling = {arm: {"draws": 4, "rows": 1, "shard_requests": 2} for arm in "ab"}
    paths = make_study(desk, sampling=sampling)
    assert killed(desk, place, half, nth)
    result = desk.collect()
    assert (result.complete, result.stored) == (True, SHARDS)
    check_whole(paths)
    assert types_of(paths).count("shard-stored") == SHARDS


def test_every_draw_once_after_a_kill_where_a_build_groups_its_requests(desk: Desk) -> None:
    grouped = {"builds": {"plain": {"rows": 3, "shard_requests": 1}}}
    sampling = {
        "a": {"draws": 6, "rows": 1, "shard_requests": 4, **grouped},
        "b": {"draws": 6, "rows": 1, "shard_requests": 3},
    }
    paths = make_study(desk, edition=2, sampling=sampling)
    assert killed(desk, "Path.replace", False, 5)
    assert 0 < types_of(paths).count("shard-stored") < SHARDS
    result = desk.collect()
    assert (result.complete, types_of(paths).count("shard-stored")) == (True, SHARDS)
    check_whole(paths)


def test_every_draw_once_after_many_kills(desk: Desk) -> None:
    sampling = {arm: {"draws": 4, "rows": 1, "shard_requests": 2} for arm in "ab"}
    paths = make_study(desk, sampling=sampling)
    chance = random.Random(7)
    for _ in range(5):
        place, half = chance.choice(PLACES)
        assert killed(desk, place, half, chance.randint(1, 6))
    assert desk.collect().complete
    check_whole(paths)


@pytest.mark.parametrize(("place", "nth"), [("write_whole", 1), ("write_whole", 2), ("Repo.commit", 1)])
def test_a_kill_while_the_end_is_signed_is_mended(desk: Desk, place: str, nth: int) -> None:
    paths = make_study(desk, sampling={arm: {"draws": 2, "rows": 1, "shard_requests": 2} for arm in "ab"})
    before = (
        "import os, signal\nfrom prereg.seal import finish\nfrom prereg.store.repo import Repo\ncount = 0\n"
        f"holder, name = ({'Repo' if place == 'Repo.commit' else 'finish'}, {place.rpartition('.')[2]!r})\n"
        "real = getattr(holder, name)\n"
        "def dying(*given, **more):\n    global count\n    count += 1\n"
        f"    if count == {nth}: os.kill(os.getpid(), signal.SIGKILL)\n    return real(*given, **more)\n"
        "setattr(holder, name, dying)"
    )
    process = collect_process(desk, before=before)
    _, error = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, error
    assert types_of(paths)[-1] == "collection-ended"
    result = desk.collect()
    assert (result.complete, result.draws) == (True, 0)
    check_whole(paths)
    assert types_of(paths).count("collection-ended") == 1
