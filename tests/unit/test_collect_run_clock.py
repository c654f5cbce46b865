"""A run's times never go back and never jump, whatever is done to the machine's clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from prereg.collect import run_clock
from prereg.collect.run_clock import RunClock

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Machine:
    """Both clocks of a machine, which the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.passed = NOON, 5000.0
        monkeypatch.setattr(run_clock, "wall", lambda: self.wall)
        monkeypatch.setattr(run_clock, "passed", lambda: self.passed)


def test_the_time_of_day_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    clock = RunClock(after=NOON - HOUR)
    assert clock.now() == NOON
    machine.passed += 90
    for jump in (-HOUR, HOUR, timedelta(days=1)):
        machine.wall += jump
        assert clock.now() == NOON + timedelta(seconds=90)


def test_it_begins_with_the_ledgers_last_entry_where_the_machine_is_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(monkeypatch)
    clock = RunClock(after=NOON + HOUR)
    assert clock.now() == NOON + HOUR
    machine.passed += 60
    assert clock.now() == NOON + HOUR + timedelta(seconds=60)


def test_the_real_clocks_go_forward() -> None:
    before = datetime.now(UTC)
    clock = RunClock(after=before - HOUR)
    times = [clock.now() for _ in range(1000)]
    assert times == sorted(times)
    assert before <= times[0] <= datetime.now(UTC) + timedelta(seconds=1)
    assert times[0].utcoffset() == timedelta(0)


def test_where_no_clock_goes_on_in_a_sleep_another_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("time.CLOCK_BOOTTIME", raising=False)
    monkeypatch.setattr("time.monotonic", lambda: 17.0)
    assert run_clock.passed() == 17.0
