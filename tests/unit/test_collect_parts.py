"""The parts of collection that need no worker: clocks, costs, progress, seeds of a repository, staging."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_collect_kit import protocol as toy_protocol

from prereg.codec.canonical import dump_file
from prereg.codec.convert import read_authored, to_json
from prereg.collect.ceilings import Clocks, study_seconds, unit_seconds
from prereg.collect.cost import cost_of
from prereg.collect.executors.base import Job, opening_of
from prereg.collect.progress import Cost, Lines, Meter, duration
from prereg.collect.runtime import load_build
from prereg.collect.staging import staged
from prereg.errors import PreregError
from prereg.model.law import Valued
from prereg.model.plan import plan
from prereg.model.record import Counters, Record, ShardMeta
from prereg.model.seal import Entry, EntryType
from prereg.model.study import Ceilings, Protocol, SeedBlock, Seeds
from prereg.seal.records import encode_shard
from prereg.store.seeds import not_understood, seeds_check, studies_in


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


def test_what_earlier_runs_took_is_charged() -> None:
    one = jobs()[0]
    clocks = Clocks(LIMITS, study_spent=95, unit_spent={one.shard.unit.id: 29}, clock=Clock())
    clocks.start(one)
    assert clocks.left(one) == 1
    assert clocks.study_left() == 5


def entry(seq: int, type_: EntryType, second: int) -> Entry:
    return Entry(
        seq=seq,
        time=f"2026-01-01T00:00:{second:02d}.000000+00:00",
        type=type_,
        actor="a",
        body={},
        body_sha256="",
        prev="",
    )


def test_pauses_between_runs_are_not_charged() -> None:
    entries = [
        entry(1, "sealed", 0),
        entry(2, "collection-started", 10),
        entry(3, "shard-stored", 14),  # killed after this
        entry(4, "collection-started", 30),
        entry(5, "shard-stored", 31),
        entry(6, "collection-ended", 33),
        entry(7, "collection-started", 50),
    ]
    assert study_seconds(entries) == 4 + 3
    assert study_seconds(entries[:1]) == 0


def meta(**changes: Any) -> ShardMeta:
    base = ShardMeta(
        study="other",
        seal="0" * 64,
        unit="m.c.a",
        shard=0,
        attempt=1,
        first_seed="500",
        requests=10,
        rows=1,
        draws=10,
        records_sha256="0" * 64,
        records_size=1,
        lines_sha256="0" * 64,
        lines_size=1,
        environment="0" * 64,
        network="cut",
        started="2026-01-01T00:00:00+00:00",
        ended="2026-01-01T00:00:02.500000+00:00",
    )
    return replace(base, **changes)


def test_a_units_seconds_are_those_of_its_shards() -> None:
    assert unit_seconds([meta(), meta(shard=1), meta(unit="m.c.b")]) == {"m.c.a": 5.0, "m.c.b": 2.5}
    backwards = meta(ended="2025-01-01T00:00:00+00:00")
    assert unit_seconds([backwards]) == {"m.c.a": 0.0}


def test_the_cost_adds_the_rates_of_both_arms() -> None:
    made, seeds = study()
    shards = plan(made, seeds)
    build = replace(load_build("plain"), requests_per_second={"reference": 10.0, "test": 5.0})
    cost = cost_of(made, shards, {"plain": build}, workers=2)
    assert (cost.draws, cost.requests) == (112, 56)
    assert cost.seconds == pytest.approx((28 / 10 + 28 / 5) / 2)
    assert str(cost) == "112 draws in 56 requests, about 4 s"
    unknown = replace(build, requests_per_second={"reference": 10.0})
    assert cost_of(made, shards, {"plain": unknown}, workers=2).seconds is None
    assert str(cost_of(made, [], {}, workers=2)) == "0 draws in 0 requests, about 0 s"


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
    first, *_, last = out.getvalue().splitlines()
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


# -- the seeds of a repository ---------------------------------------------------------------------------


def add_study(studies: Path, name: str, *blocks: tuple[str, int, int]) -> Path:
    root = studies / name
    root.mkdir(parents=True)
    value = {
        "schema": "prereg/seeds/v1",
        "study": name,
        "blocks": [
            {"id": b, "role": "discovery", "unit": f"m.{b}.a", "first": str(f), "end": str(e)}
            for b, f, e in blocks
        ],
    }
    (root / "seeds.json").write_text(json.dumps(value))
    return root


def add_meta(root: Path, **changes: Any) -> None:
    made = meta(**changes)
    file = root / "records" / made.unit / f"{made.shard:05d}.meta.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(dump_file(to_json(made)))


def test_the_seeds_check_names_reserved_used_and_own_overlaps(tmp_path: Path) -> None:
    add_study(tmp_path, "a", ("x", 0, 10), ("y", 5, 7))
    used = add_study(tmp_path, "b", ("z", 5000, 5010))
    add_meta(used, first_seed=str((1 << 32) + 8), requests=4, draws=4)
    (tmp_path / "not-a-study").mkdir()
    (tmp_path / "README").write_text("")
    found = {
        (o.study_a, o.block_a, o.study_b, o.block_b, o.first, o.end, o.width) for o in seeds_check(tmp_path)
    }
    assert found == {("a", "x", "a", "y", 5, 7, 64), ("a", "x", "b", "records/m.c.a", 8, 10, 32)}


def test_a_studys_records_lie_in_its_own_blocks_without_complaint(tmp_path: Path) -> None:
    add_meta(add_study(tmp_path, "b", ("z", 500, 510)))
    assert seeds_check(tmp_path) == []


def mark(root: Path, name: str, how: str) -> None:
    """Put something that is there but cannot be read."""
    file = root / name
    root.mkdir(parents=True, exist_ok=True)
    if how == "link":
        file.symlink_to("nowhere")
    elif how == "pipe":
        os.mkfifo(file)
    elif how == "folder":
        file.mkdir()
    else:
        file.write_text("<<FILL")


HOW = ["link", "pipe", "folder", "junk"]


@pytest.mark.parametrize("how", HOW)
def test_a_draft_that_is_not_understood_reserves_nothing_and_is_named(tmp_path: Path, how: str) -> None:
    add_study(tmp_path, "b", ("x", 0, 10))
    mark(tmp_path / "a", "seeds.json", how)
    assert [p.name for p in studies_in(tmp_path)] == ["a", "b"]
    assert seeds_check(tmp_path) == []
    assert not_understood(tmp_path) == ["a"]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", ["ledger.jsonl", "records"])
def test_a_study_that_is_no_draft_must_have_seeds_that_are_understood(
    tmp_path: Path, name: str, how: str
) -> None:
    mark(tmp_path / "a", name, how)
    with pytest.raises(PreregError, match="missing") as caught:
        seeds_check(tmp_path)
    assert str(caught.value.where).endswith("a/seeds.json")
    (tmp_path / "a" / "seeds.json").write_text("<<FILL")
    with pytest.raises(PreregError, match="not understood") as caught:
        seeds_check(tmp_path)
    assert str(caught.value.where).endswith("a/seeds.json")
    assert not_understood(tmp_path) == []


@pytest.mark.parametrize("how", ["link", "pipe", "junk"])
@pytest.mark.parametrize("name", ["records", "records/m.c.a"])
def test_records_that_are_no_folder_are_a_fault(tmp_path: Path, name: str, how: str) -> None:
    root = add_study(tmp_path, "a", ("x", 0, 1))
    mark((root / name).parent, Path(name).name, how)
    with pytest.raises(PreregError, match="folder") as caught:
        seeds_check(tmp_path)
    assert str(caught.value.where).endswith(name)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", ["00001.meta.json", "00001.jsonl.gz", "00000.jsonl.gz"])
def test_a_record_file_that_cannot_be_read_is_a_fault(tmp_path: Path, name: str, how: str) -> None:
    root = add_study(tmp_path, "a", ("x", 500, 510))
    add_meta(root)
    folder = next((root / "records").iterdir())
    mark(folder, name, how)
    with pytest.raises(PreregError) as caught:
        seeds_check(tmp_path)
    assert str(caught.value.where).endswith(name)


def test_the_seeds_in_the_lines_count_whatever_the_meta_says(tmp_path: Path) -> None:
    add_study(tmp_path, "a", ("x", 9000, 9002))
    root = add_study(tmp_path, "b", ("z", 500, 510))
    add_meta(root)
    file = next((root / "records").glob("*/*.meta.json"))
    record = Record(
        seal="a" * 64, unit=file.parent.name, shard=0, attempt=1, draw=0, seed="9001", row=0,
        outcome=Valued(value='"seed":"7"'), counters=Counters(proposals=0, verifications=0, accepted=0),
    )  # fmt: skip
    file.with_name("00000.jsonl.gz").write_bytes(encode_shard([record]).data)
    (found,) = seeds_check(tmp_path)
    assert (found.study_a, found.study_b, found.first, found.end) == ("a", "b", 9001, 9002)


UNDERSTOOD = [
    [{"first": "0", "end": "18446744073709551616"}],
    [{"first": 5, "end": 6.0, "id": 3, "more": None}],
    [{"first": "1", "end": 2, "id": "x"}, {"first": "5", "end": "9", "id": "x"}],
]
NOT_UNDERSTOOD: list[Any] = [
    None,
    {},
    [],
    [1],
    [{"first": "5"}],
    [{"first": "6", "end": "6"}],
    [{"first": "-1", "end": "6"}],
    [{"first": -1, "end": 6}],
    [{"first": "01", "end": "6"}],
    [{"first": False, "end": 6}],
    [{"first": 5, "end": 6.5}],
    [{"first": "0", "end": "18446744073709551617"}],
    [{"first": "5", "end": "6"}, {"first": "<<FILL", "end": "9"}],
]


@pytest.mark.parametrize("blocks", UNDERSTOOD)
def test_nothing_but_first_and_end_matters_in_another_studys_seeds(tmp_path: Path, blocks: list[Any]) -> None:
    add_study(tmp_path, "b", ("y", 5, 6))
    root = add_study(tmp_path, "a")
    (root / "seeds.json").write_text(json.dumps({"blocks": blocks, "study": "b", "what": 1}))
    (found,) = seeds_check(tmp_path)
    assert (found.study_a, found.study_b, found.first, found.end) == ("a", "b", 5, 6)
    assert not_understood(tmp_path) == []


@pytest.mark.parametrize("blocks", NOT_UNDERSTOOD)
def test_what_is_not_understood_of_a_draft_is_nothing(tmp_path: Path, blocks: Any) -> None:
    add_study(tmp_path, "b", ("y", 5, 6))
    root = add_study(tmp_path, "a")
    (root / "seeds.json").write_text(json.dumps({"blocks": blocks}))
    assert seeds_check(tmp_path) == []
    assert not_understood(tmp_path) == ["a"]
    (root / "ledger.jsonl").write_text("")
    with pytest.raises(PreregError, match="not understood"):
        seeds_check(tmp_path)


def test_a_copy_of_a_study_overlaps_with_it(tmp_path: Path) -> None:
    add_study(tmp_path, "a", ("x", 5, 6))
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert len(seeds_check(tmp_path)) == 1


def test_the_command_names_what_is_not_understood(tmp_path: Path) -> None:
    add_study(tmp_path, "b", ("y", 5, 6))
    mark(tmp_path / "a", "seeds.json", "link")
    command = [str(Path(sys.executable).parent / "prereg"), "seeds", "check", str(tmp_path)]
    run = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == {"studies": ["a", "b"], "overlaps": [], "not_understood": ["a"]}
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "not understood, so reserving nothing: a" in " ".join((run.stdout + run.stderr).split())


def test_an_altered_meta_is_not_passed_over(tmp_path: Path) -> None:
    root = add_study(tmp_path, "a", ("x", 0, 1))
    add_meta(root)
    file = next(root.rglob("*.meta.json"))
    file.write_bytes(file.read_bytes().replace(b'"first_seed":"500"', b'"first_seed":500'))
    with pytest.raises(PreregError, match="first_seed"):
        seeds_check(tmp_path)
