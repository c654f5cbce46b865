"""`collect` on real studies with real workers: what it makes, and what it survives."""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from test_collect_kit import (
    SIMULATE,
    Desk,
    StopAfter,
    body_of,
    check_whole,
    collect_process,
    fresh_desk,
    git,
    make_study,
    types_of,
)

from prereg.collect.executors.base import Failed, Finished
from prereg.collect.executors.local import LocalExecutor
from prereg.collect.network import isolation
from prereg.collect.runner import STUDY_CEILING
from prereg.errors import EvidenceIncomplete, PreregError
from prereg.seal.verify import verify_study


@pytest.fixture
def desk(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return fresh_desk(tmp_path, tmp_path_factory, monkeypatch)


def test_a_study_is_collected(desk: Desk) -> None:
    paths = make_study(desk)
    result = desk.collect()
    assert (result.complete, result.exit_code, dict(result.invalid)) == (True, 0, {})
    assert (result.planned, result.stored, result.draws) == (20, 20, 112)
    check_whole(paths)
    assert types_of(paths) == ["sealed", "collection-started", *["shard-stored"] * 20, "collection-ended"]
    assert desk.begun is not None
    total, done, cost = desk.begun
    assert (total, done, cost.draws, cost.requests, desk.advanced) == (112, 0, 112, 56, 112)
    assert cost.seconds == pytest.approx(56 / 30 / 2)
    assert desk.worked == pytest.approx(cost.seconds)
    started = body_of(paths, "collection-started")
    assert (started["network"], started["network_reason"]) == (isolation().network, isolation().reason)
    message = git(paths.repository, "log", "-1", "--format=%B")
    assert f"Prereg-Seal: {started['seal']}" in message
    assert list(Path(tempfile.gettempdir()).iterdir()) == []


def test_the_records_do_not_depend_on_the_number_of_workers(desk: Desk) -> None:
    one, two = make_study(desk, "toy"), make_study(desk, "again", first_seed=6_000_000)
    desk.collect("toy", workers=1)
    desk.collect("again", workers=3)
    for paths in (one, two):
        check_whole(paths)
        names = sorted(p.relative_to(paths.records).as_posix() for p in paths.records.rglob("*.gz"))
        assert len(names) == 20


def test_a_command_that_fails_is_an_outcome(desk: Desk) -> None:
    paths = make_study(desk, script="import sys; sys.exit(3 if sys.argv[1] == 'b' else 0)")
    assert desk.collect().complete
    verified = verify_study(paths)
    assert verified.state == "collected"
    assert verified.invalid == {}
    check_whole(paths)


def test_an_interrupted_run_is_signed_and_goes_on(desk: Desk) -> None:
    paths = make_study(desk)
    result = desk.collect(executor=StopAfter)
    assert (result.complete, result.exit_code, result.stored) == (False, 3, 3)
    ended = body_of(paths, "collection-ended")
    assert (ended["complete"], ended["stored"], ended["invalid"]) == (False, 3, [])
    verified = verify_study(paths)
    assert verified.state == "collecting"
    assert git(paths.repository, "status", "--porcelain") == ""
    again = desk.collect()
    assert again.complete
    assert desk.begun is not None
    assert desk.begun[1] == sum(e["draws"] for e in verified.stored.values())
    check_whole(paths)
    assert types_of(paths).count("collection-started") == 2
    assert types_of(paths).count("shard-stored") == 20


def test_the_ceiling_counts_what_earlier_runs_took(desk: Desk) -> None:
    ceilings = {"study_seconds": 3, "unit_seconds": 60, "request_seconds": 20, "on_ceiling": "INVALID"}
    paths = make_study(desk, ceilings=ceilings)

    class SlowStop(StopAfter):
        def run(self, *args: Any, **kwargs: Any) -> Generator[Finished | Failed, None, None]:
            for result in super().run(*args, **kwargs):
                time.sleep(1.2)
                yield result

    assert not desk.collect(executor=SlowStop).complete
    result = desk.collect()
    assert (result.complete, result.draws) == (True, 0)
    assert set(result.invalid.values()) == {STUDY_CEILING}
    assert verify_study(paths).state == "collected"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_at_once_and_cleanly(desk: Desk, number: signal.Signals) -> None:
    slow = "import time\ntime.sleep(0.1 if int(__import__('sys').argv[2]) < 5_000_006 else 30)\n"
    paths = make_study(desk, script=slow + SIMULATE)
    process = collect_process(desk)
    until = time.monotonic() + 30
    while types_of(paths).count("shard-stored") < 2 and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(number)
    sent = time.monotonic()
    _, error = process.communicate(timeout=30)
    assert time.monotonic() - sent < 5
    assert process.returncode == 3, error
    assert types_of(paths)[-1] == "collection-ended"
    assert verify_study(paths).state == "collecting"


@pytest.mark.parametrize("room", [0, 700, 1500, 3000], ids=["staging", "start", "middle", "later"])
def test_a_full_disk_stops_the_run_and_costs_nothing(desk: Desk, room: int) -> None:
    paths = make_study(desk)
    limit = paths.ledger.stat().st_size + room
    full = f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, -1))"
    before = (
        "import resource\nfrom prereg.collect import gates\nadmit = gates.admit\n"
        f"def full(*given):\n    found = admit(*given); {full}; return found\ngates.admit = full"
    )
    process = collect_process(desk, before=before if room else f"import resource; {full}")
    _, error = process.communicate(timeout=60)
    assert process.returncode == EvidenceIncomplete.exit_code, error
    assert "the collection stopped: File too large" in error
    assert "prereg collect" in error
    stored = types_of(paths).count("shard-stored") if paths.ledger.read_bytes().endswith(b"\n") else -1
    assert stored < 20
    assert desk.collect().complete
    check_whole(paths)


def test_nothing_is_lost_if_the_executor_itself_fails(desk: Desk) -> None:
    paths = make_study(desk)

    class Broken(LocalExecutor):
        def run(self, *args: Any, **kwargs: Any) -> Generator[Finished | Failed, None, None]:
            yield from (result for _, result in zip(range(2), super().run(*args, **kwargs), strict=False))
            raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        desk.collect(executor=Broken)
    assert types_of(paths)[-1] == "collection-ended"
    assert desk.collect().complete
    check_whole(paths)


def test_every_refusal_says_what_to_do(desk: Desk) -> None:
    make_study(desk)
    desk.collect()
    with pytest.raises(PreregError) as caught:
        desk.collect()
    assert caught.value.next_step
    assert caught.value.where
