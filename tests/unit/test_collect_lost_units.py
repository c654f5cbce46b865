"""Units whose worker dies, hangs, talks nonsense, lies or takes too long: INVALID, and the others go on."""

from __future__ import annotations

import re
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from test_collect_kit import (
    SIMULATE,
    Desk,
    configuration,
    draws_of,
    expected_draws,
    fresh_desk,
    make_study,
    types_of,
)

from prereg.collect.executors.base import Failed, Finished
from prereg.collect.executors.local import LocalExecutor
from prereg.collect.runner import STUDY_CEILING
from prereg.seal.verify import verify_study


@pytest.fixture
def desk(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return fresh_desk(tmp_path, tmp_path_factory, monkeypatch)


BAD = ["{python}", "simulate.py", "{arm}", "{seed}", "{rows}", "bad"]
HEAD = "import glob, os, signal, sys, time\nbad = len(sys.argv) > 4 and int(sys.argv[2]) % 5 == 2\n"
SHOUT = """
if bad:
    for fd in glob.glob(f"/proc/{os.getppid()}/fd/*"):
        if os.readlink(fd).startswith("pipe:") and not fd.endswith("/2"):
            try:
                out = os.open(fd, os.O_WRONLY | os.O_NONBLOCK)
                os.write(out, b"hello from the engine\\n")
            except OSError:
                pass
"""
LAST_WORDS = """
if bad:
    with open(f"/proc/{os.getppid()}/fd/2", "w") as err:
        err.write("over\\x1b[2K\\u202eback")
    os.kill(os.getppid(), signal.SIGKILL)
"""
FAULTS = [
    ("draws on the screen", LAST_WORDS, r"over\\x1b\[2K\\u202eback"),
    ("dies", "if bad: os.kill(os.getppid(), signal.SIGKILL)\n", "killed by SIGKILL|ended during"),
    ("hangs", "if bad: time.sleep(60)\n", "sent nothing for 1 seconds during 'draws'"),
    ("prints garbage", SHOUT, "hello from the engine"),
]


@pytest.mark.parametrize(("body", "reason"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_a_unit_whose_worker_fails_is_invalid_and_the_others_go_on(
    desk: Desk, body: str, reason: str
) -> None:
    configurations = [configuration("one", BAD), configuration("two")]
    paths = make_study(
        desk,
        script=HEAD + body + SIMULATE,
        configurations=configurations,
        ceilings={"study_seconds": 600, "unit_seconds": 300, "request_seconds": 1, "on_ceiling": "INVALID"},
    )
    result = desk.collect()
    assert result.complete
    assert set(result.invalid) == {"main.one.a", "main.one.b"}
    for said in result.invalid.values():
        assert re.search(reason, said), said
    # Two workers lose the unit at about the same time, and it is entered once.
    assert types_of(paths).count("unit-invalid") == 2
    expected = expected_draws(paths)
    got = draws_of(paths)
    for unit in ("main.two.a", "main.two.b"):
        assert got[unit] == expected[unit]
    verified = verify_study(paths)
    assert (verified.state, set(verified.invalid)) == ("collected", set(result.invalid))


def test_a_command_that_cannot_start_loses_its_unit(desk: Desk) -> None:
    make_study(desk, configurations=[configuration("one", ["/no/such/program"]), configuration("two")])
    result = desk.collect()
    assert set(result.invalid) == {"main.one.a", "main.one.b"}
    assert "cannot start '/no/such/program'" in result.invalid["main.one.a"]


class Liar(LocalExecutor):
    """Hands on replies that were tampered with."""

    def run(self, *args: Any, **kwargs: Any) -> Generator[Finished | Failed, None, None]:
        for result in super().run(*args, **kwargs):
            if isinstance(result, Finished) and result.job.shard.unit.id == "main.one.b":
                self.tamper(result.replies)
            yield result

    @staticmethod
    def tamper(replies: list[Any]) -> None:
        raise NotImplementedError


def _with(path: str, value: Any) -> Any:
    def tamper(replies: list[Any]) -> None:
        at: Any = replies
        *steps, last = [int(p) if p.isdigit() else p for p in path.split("/")]
        for step in steps:
            at = at[step]
        at[last] = value

    return type("LiarHere", (Liar,), {"tamper": staticmethod(tamper)})


ZERO = {"proposals": 0, "verifications": 0, "accepted": 0}
LIES = [
    ("seed", _with("1/seed", "7"), "was answered for seed '7'"),
    ("seed as a number", _with("0/seed", 5000014), "was answered for seed"),
    ("rows", _with("1/draws", []), "returned 0 draws, not 2"),
    ("no draws", _with("1/draws", None), "returned no draws"),
    ("requests", type("Short", (Liar,), {"tamper": staticmethod(lambda r: r.pop())}), "replies to"),
    ("outcome", _with("0/draws/1/outcome", {"tokens": [1]}), "outcome is neither"),
    ("token", _with("0/draws/1/outcome", {"tokens": [-1], "finish": None}), "not a list of"),
    ("boolean token", _with("0/draws/1/outcome", {"tokens": [True], "finish": None}), "not a list of"),
    ("value", _with("0/draws/1/outcome", {"value": [1]}), "value is neither"),
    ("large value", _with("0/draws/1/outcome", {"value": 2**60}), "no record"),
    ("not NFC", _with("0/draws/1/outcome", {"value": "e\u0301"}), "no record"),
    ("surrogate", _with("0/draws/1/outcome", {"value": "\ud800"}), "no record"),
    ("no counters", _with("0/draws/0/counters", None), "has no counters"),
    ("counter", _with("0/draws/0/counters", {**ZERO, "accepted": -1}), "is not a count"),
    ("counter of nothing", _with("0/draws/0/counters", {**ZERO, "accepted": 1}), "without a drafter"),
    ("more", _with("0/draws/0/extra", 1), "is no outcome with counters"),
]


@pytest.mark.parametrize(("executor", "reason"), [lie[1:] for lie in LIES], ids=[lie[0] for lie in LIES])
def test_a_worker_that_lies_loses_its_unit(desk: Desk, executor: Any, reason: str) -> None:
    paths = make_study(desk, sampling={arm: {"draws": 8, "rows": 2, "shard_requests": 2} for arm in "ab"})
    result = desk.collect(executor=executor)
    assert result.complete
    assert list(result.invalid) == ["main.one.b"]
    assert reason in result.invalid["main.one.b"]
    assert not (paths.records / "main.one.b").exists()
    assert verify_study(paths).state == "collected"


def test_a_unit_that_takes_too_long_is_invalid(desk: Desk) -> None:
    configurations = [configuration("one", BAD), configuration("two")]
    make_study(
        desk,
        script="import sys, time\nif len(sys.argv) > 4: time.sleep(2.5)\n" + SIMULATE,
        configurations=configurations,
        ceilings={"study_seconds": 600, "unit_seconds": 8, "request_seconds": 20, "on_ceiling": "INVALID"},
    )
    result = desk.collect()
    assert result.complete
    assert set(result.invalid) == {"main.one.a", "main.one.b"}
    assert all("ceiling of time" in reason for reason in result.invalid.values())


def test_a_study_that_takes_too_long_ends_with_its_rest_invalid(desk: Desk) -> None:
    paths = make_study(
        desk,
        script="import time\ntime.sleep(0.4)\n" + SIMULATE,
        ceilings={"study_seconds": 2, "unit_seconds": 60, "request_seconds": 20, "on_ceiling": "INVALID"},
    )
    began = time.monotonic()
    result = desk.collect()
    assert time.monotonic() - began < 15
    assert result.complete
    assert set(result.invalid) == set(expected_draws(paths))
    assert STUDY_CEILING in result.invalid.values()
    assert verify_study(paths).state == "collected"
