"""Files of records torn at some byte, clocks that are set, machines that sleep: each draw is there once."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "unit"), str(HERE.parent / "tamper")]

import verbs  # noqa: E402
from clocks import DAY, HOUR, kill_at_keep, set_clock, sleep_between  # noqa: E402
from desk import Desk, copy_of, make_desk  # noqa: E402

MANY = int(os.environ.get("KILL_POINTS", "12")) > 12
PARTS = [i / 16 for i in range(17)] if MANY else [0.0, 0.6, 1.0]
"""How much of a file is there."""
Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    builds = tmp_path_factory.mktemp("builds")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREREG_CACHE", str(builds))
        assert verbs.prereg("build", "plain").code == 0
        yield make_desk(tmp_path_factory.mktemp("sealed") / "home", builds)


@pytest.fixture(scope="module")
def stored(sealed: Desk, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The records of a collection that was left alone."""
    desk = copy_of(sealed, tmp_path_factory.mktemp("stored") / "home")
    done = desk.collect()
    assert done.code == 0, done.said
    return desk.paths.records


def check(desk: Desk, record: Record, group: str) -> None:
    found = desk.faults()
    record("group", group)
    for name, count in found.items():
        record(name, count)
    assert found == {"lost": 0, "doubled": 0}
    desk.check_sound()


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("kind", ["jsonl.gz", "meta.json", "partial"])
def test_records_that_are_torn(
    kind: str, part: float, sealed: Desk, stored: Path, tmp_path: Path, record_property: Record
) -> None:
    """What a power cut left of a shard that the ledger does not know is no record: it is drawn again."""
    desk = copy_of(sealed, tmp_path / "home")
    folder = desk.paths.records / "main.fair.new"
    folder.mkdir(parents=True)
    whole = stored / "main.fair.new" / ("00001.meta.json" if kind == "meta.json" else "00001.jsonl.gz")
    data = whole.read_bytes()
    name = f".{whole.name}.4711.partial" if kind == "partial" else whole.name
    (folder / name).write_bytes(data[: int(part * len(data))])
    if kind == "meta.json":
        shutil.copy(whole.with_name("00001.jsonl.gz"), folder)
    done = desk.collect()
    assert done.code == 0, done.said
    assert whole.read_bytes() == (folder / whole.name).read_bytes() or kind == "meta.json"
    check(desk, record_property, "torn file of records")
    shutil.rmtree(tmp_path / "home")


@pytest.mark.parametrize("part", PARTS[:-1])
def test_a_stored_shard_that_is_torn(
    part: float, sealed: Desk, stored: Path, tmp_path: Path, record_property: Record
) -> None:
    """What the ledger knows was whole once: it is refused by name, never drawn again."""
    record_property("group", "torn file of records")
    desk = copy_of(sealed, tmp_path / "home")
    shutil.copytree(stored.parents[2], desk.paths.repository, dirs_exist_ok=True, symlinks=True)
    shard = desk.paths.records / "main.fair.new" / "00001.jsonl.gz"
    data = shard.read_bytes()
    shard.write_bytes(data[: int(part * len(data))])
    for verb in ("verify", "collect", "auditor"):
        done = verbs.run(verb, desk.paths.root, "col", desk.env)
        if verb == "collect":  # every draw is there, so that it looks at no record
            assert done.code == 4 and "is collected" in done.said
        else:
            assert done.code == 1 and "00001" in done.said, done.said
    assert len(shard.read_bytes()) < len(data)
    shutil.rmtree(tmp_path / "home")


def lost(desk: Desk) -> set[str]:
    """Units that are entered as failed."""
    entries = [json.loads(line) for line in desk.paths.ledger.read_bytes().splitlines()]
    return {entry["body"]["unit"] for entry in entries if entry["type"] == "unit-invalid"}


def check_to_the_end(desk: Desk, before: Callable[[], object] = lambda: None) -> None:
    """Whoever comes next, by whatever clock, is not stopped by the times that are there."""
    for verb, who in (("analyse", "ada"), ("audit", "rex")):
        done = verbs.run(verb, desk.paths.root, who, desk.env, before)
        assert done.code == 0, done.said
        desk.check_sound()


SHIFTS: dict[str, Callable[[int], timedelta]] = {
    "an hour behind the seal": lambda n: -HOUR,
    "a day ahead": lambda n: DAY,
    "set back while shards are drawn": lambda n: -HOUR if n >= 3 else timedelta(),
    "set ahead for a while": lambda n: DAY if 3 <= n < 8 else timedelta(),
    "set to and fro": lambda n: DAY * (-1) ** n,
}


@pytest.mark.parametrize("name", SHIFTS)
def test_a_clock_that_is_set(name: str, sealed: Desk, tmp_path: Path, record_property: Record) -> None:
    """No time goes back, and no ceiling takes what a clock only seemed to."""
    desk = copy_of(sealed, tmp_path / "home")
    before = partial(set_clock, SHIFTS[name])
    done = desk.collect(before)
    assert done.code == 0, done.said
    assert not lost(desk)
    check(desk, record_property, "clock that is set")
    check_to_the_end(desk, before)
    shutil.rmtree(tmp_path / "home")


@pytest.mark.parametrize("later", SHIFTS if MANY else ["an hour behind the seal", "set to and fro"])
@pytest.mark.parametrize("name", ["a day ahead", "set ahead for a while"])
def test_a_clock_that_is_set_before_a_kill(
    name: str, later: str, sealed: Desk, tmp_path: Path, record_property: Record
) -> None:
    """A day more or less between a killed run and the next, or within either, costs no draw."""
    desk = copy_of(sealed, tmp_path / "home")
    desk.break_off(partial(set_clock, SHIFTS[name]))
    done = desk.collect(partial(set_clock, SHIFTS[later]))
    assert done.code == 0, done.said
    assert not lost(desk)
    check(desk, record_property, "clock that is set, and kill -9")
    shutil.rmtree(tmp_path / "home")


def journals(desk: Desk) -> Path:
    """What is kept of this study's runs."""
    seal = hashlib.sha256(desk.paths.manifest.read_bytes()).hexdigest()
    return Path(desk.env["PREREG_CACHE"]) / "walks" / seal


@pytest.fixture
def slept(sealed: Desk, tmp_path: Path) -> Iterator[Desk]:
    """A killed run of a machine that slept whenever it could; the cache is its own."""
    desk = copy_of(sealed, tmp_path / "home")
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "builds").symlink_to(Path(desk.env["PREREG_CACHE"]) / "builds")
    desk = Desk(paths=desk.paths, env={**desk.env, "PREREG_CACHE": str(cache)})
    desk.break_off(sleep_between)
    assert len(list(journals(desk).glob("run-*.json"))) == 1
    yield desk
    shutil.rmtree(tmp_path / "home")


def test_a_machine_that_slept(slept: Desk, record_property: Record) -> None:
    """A journal tells what the killed run really took."""
    done = slept.collect(sleep_between)
    assert done.code == 0, done.said
    assert not lost(slept) and not journals(slept).exists()
    check(slept, record_property, "machine that slept")
    check_to_the_end(slept)


@pytest.mark.parametrize("nth", range(2, 8))
def test_a_machine_that_slept_before_a_kill(
    nth: int, sealed: Desk, tmp_path: Path, record_property: Record
) -> None:
    """Nothing is in the ledger whose time the journal lacks, wherever the kill came."""
    desk = copy_of(sealed, tmp_path / "home")

    def before() -> None:
        sleep_between()
        kill_at_keep(nth)

    assert desk.collect(before).code == -signal.SIGKILL
    done = desk.collect(sleep_between)
    assert done.code == 0, done.said
    assert not lost(desk)
    check(desk, record_property, "machine that slept, and kill -9")
    shutil.rmtree(tmp_path / "home")


@pytest.mark.parametrize("damage", ["gone", "torn", "garbage"])
def test_a_machine_that_slept_without_a_journal(damage: str, slept: Desk, record_property: Record) -> None:
    """The ledger's times alone take nothing away before somebody has said so."""
    (journal,) = journals(slept).glob("run-*.json")
    if damage == "gone":
        journal.unlink()
    else:
        journal.write_bytes(journal.read_bytes()[:20] if damage == "torn" else b"\0" * 40)
    before = slept.paths.ledger.read_bytes()
    done = slept.collect()
    assert done.code == 4 and "--ledger-times leave-out" in done.said, done.said
    assert slept.paths.ledger.read_bytes() == before
    done = slept.collect(more=["--ledger-times", "leave-out"])
    assert done.code == 0, done.said
    assert not lost(slept)
    check(slept, record_property, "machine that slept")


def test_a_ceiling_that_was_reached_as_somebody_says(slept: Desk) -> None:
    shutil.rmtree(journals(slept))
    done = slept.collect(more=["--ledger-times", "count"])
    assert done.code == 0, done.said
    assert lost(slept)
    slept.check_sound()
