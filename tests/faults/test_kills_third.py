"""Edition 3: a collection is killed over a shard, and killed again at every step of comparing what it left.

The first kill leaves a whole result that the ledger does not have; the second comes before, or in the middle
of, any durable step of the next run. However that ends, the run after it leaves each draw once, and what the
first run had is compared: kept, byte for byte, where the command returns something else each time, and not
kept where it returns the same.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
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

from prereg.store.ledger import LedgerWriter  # noqa: E402

POINTS = max(3, int(os.environ.get("KILL_POINTS", "12")) // 5)
"""Of each command; those about the second result come first."""
PLAN = {"edition": 3, "attempts": 2}
COMMANDS = {
    "the same each time": "",
    "another each time": 'import os\nprint(json.dumps({"value": os.urandom(8).hex()}))\nsys.exit()',
}


def killed_before_entry(kind: str, nth: int) -> None:
    """Let this process die before its n-th entry of that type: the files of a shard are whole by then."""
    append, count = LedgerWriter.append, iter(range(1, 1_000_000))

    def dies(self: LedgerWriter, type_: Any, *given: Any, **more: Any) -> Any:
        if type_ == kind and next(count) == nth:
            os.killpg(0, signal.SIGKILL)
        return append(self, type_, *given, **more)

    LedgerWriter.append = dies  # type: ignore[method-assign]


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A study whose collection was killed over a shard, and what the next run does."""

    desk: Desk
    unit: str
    shard: int
    data: bytes
    """What the killed run had of the shard."""
    steps: list[str]

    def points(self) -> list[tuple[str, int]]:
        """Those around the renames and removals first, then any others."""
        numbered = list(enumerate(self.steps, 1))
        own = [at for at, name in numbered if name in ("replace", "unlink")]
        near = sorted({at + d for at in own for d in (0, 1) if at + d <= len(numbered)})
        found = [("before", at) for at in near]
        rest = [("before", at) for at, _ in numbered if at not in near]
        rest += [("torn", at) for at, name in numbered if name in inject.TORN]
        chance = random.Random(20_261_201)
        first = [("before", own[0]), *chance.sample(found, len(found))]
        return list(dict.fromkeys([*first, *chance.sample(rest, len(rest))]))[:POINTS]


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    found = tmp_path_factory.mktemp("builds")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREREG_CACHE", str(found))
        assert verbs.prereg("build", "plain").code == 0
        yield found


@pytest.fixture(scope="module", params=COMMANDS)
def left(request: Any, builds: Path, tmp_path_factory: pytest.TempPathFactory) -> Left:
    place = tmp_path_factory.mktemp("left") / "home"
    desk = make_desk(place, builds, COMMANDS[request.param], PLAN)
    done = desk.collect(partial(killed_before_entry, "shard-stored", 3))
    assert done.code == -signal.SIGKILL, done.said
    stored = {(b["unit"], b["shard"]) for b in bodies(desk, "shard-stored")}
    files = {(f.parent.name, int(f.name[:5])): f for f in desk.paths.records.rglob("?????.jsonl.gz")}
    ((unit, shard),) = files.keys() - stored
    alone = copy_of(desk, tmp_path_factory.mktemp("alone") / "home")
    log = tmp_path_factory.mktemp("log") / "steps"
    done = alone.collect(partial(inject.arm, log))
    assert done.code == 0, done.said
    steps = log.read_text().split()
    data = files[unit, shard].read_bytes()
    return Left(desk=desk, unit=unit, shard=shard, data=data, steps=steps)


def bodies(desk: Desk, kind: str) -> list[dict[str, Any]]:
    entries = [json.loads(line) for line in desk.paths.ledger.read_bytes().splitlines()]
    return [e["body"] for e in entries if e["type"] == kind]


@pytest.mark.parametrize("number", range(POINTS))
def test_what_was_left_is_compared_once(
    number: int, left: Left, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    kind, at = left.points()[number]
    record_property("group", "kill -9 over a second result")
    desk = copy_of(left.desk, tmp_path / "home")
    try:
        done = desk.collect(partial(inject.arm, tmp_path / "log", at, kind))
        # How many steps a run has depends on which shard is done first.
        assert done.code in (-signal.SIGKILL, 0), done.said
        done = desk.collect()
        where = f"{kind} {at} {left.steps[at - 1]}"
        assert done.code in (0, 4), f"{where}\n{done.said}"
        found = desk.faults()
        for name, count in found.items():
            record_property(name, count)
        assert found == {"lost": 0, "doubled": 0}, where
        check_evidence(left, desk, where)
        desk.check_sound()
    finally:
        shutil.rmtree(tmp_path / "home", ignore_errors=True)


def check_evidence(left: Left, desk: Desk, where: str) -> None:
    """The first run's result is entered once; the second run may have left one more, of whatever shard."""
    entries = bodies(desk, "duplicate")
    own = [b for b in entries if (b["unit"], b["shard"]) == (left.unit, left.shard)]
    assert len(own) in (1, 2) and len(entries) <= 2, where
    other = desk.paths.records.rglob("*.duplicate-*")
    assert len(list(other)) == sum(b["differing"] > 0 for b in entries), where
    stored = desk.paths.shard_records(left.unit, left.shard).read_bytes()
    first = desk.paths.duplicate(left.unit, left.shard, 1, 1)
    assert (first.read_bytes() if own[0]["differing"] else stored) == left.data, where
    begun = [b for b in bodies(desk, "attempt") if (b["unit"], b["shard"]) == (left.unit, left.shard)]
    assert len(begun) in (2, 3), where
