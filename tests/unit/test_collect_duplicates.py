"""Edition 3: what a killed run left whole is drawn again and compared, and never merged."""

from __future__ import annotations

import copy
import gzip
import json
import signal
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from test_collect_kit import (
    SIMULATE,
    Desk,
    check_whole,
    collect_process,
    fresh_desk,
    git,
    make_study,
    stop_after,
    types_of,
)

from prereg.collect.executors.base import Failed, Finished
from prereg.collect.executors.local import LocalExecutor
from prereg.model.attempts import Copies
from prereg.seal.verify import verify_report
from prereg.store.layout import StudyPaths
from prereg.store.ledger import read_ledger

RANDOM = """import json, os, sys
for row in range(int(sys.argv[3])):
    print(json.dumps({"value": os.urandom(8).hex()}))
"""
SCRIPTS = {"the same each time": (SIMULATE, 0), "another each time": (RANDOM, 2)}
# Ends the process before, or just after, the n-th entry of one type.
KILLER = """
import os, signal
from prereg.store.ledger import LedgerWriter
append, count = LedgerWriter.append, 0
def killed(self, kind, body, actor, **more):
    global count
    count += kind == {kind!r}
    if kind == {kind!r} and count == {nth}:
        if {after}:
            append(self, kind, body, actor, **more)
        os.kill(os.getpid(), signal.SIGKILL)
    return append(self, kind, body, actor, **more)
LedgerWriter.append = killed
"""


@pytest.fixture
def desk(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return fresh_desk(tmp_path, tmp_path_factory, monkeypatch)


def third(desk: Desk, script: str = SIMULATE, **changes: Any) -> StudyPaths:
    """A sealed study of edition 3; each of its four units has two shards of two requests."""
    plan = {
        "edition": 3,
        "attempts": 2,
        "sampling": {arm: {"draws": 4, "rows": 1, "shard_requests": 2} for arm in "ab"},
        **changes,
    }
    return make_study(desk, script=script, **plan)


def kill(desk: Desk, kind: str, nth: int = 1, *, after: bool = False) -> None:
    process = collect_process(desk, before=KILLER.format(kind=kind, nth=nth, after=after), workers=1)
    _, error = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, error


def left_whole(paths: StudyPaths) -> tuple[str, int]:
    """The shard whose files lie there and that the ledger does not have."""
    stored = {(e.body["unit"], e.body["shard"]) for e in ledger(paths) if e.type == "shard-stored"}
    files = {(f.parent.name, int(f.name[:5])) for f in paths.records.rglob("?????.jsonl.gz")}
    (place,) = files - stored
    return place


def ledger(paths: StudyPaths) -> list[Any]:
    return list(read_ledger(paths.ledger.read_bytes()))


def duplicates(paths: StudyPaths) -> list[dict[str, Any]]:
    return [e.body for e in ledger(paths) if e.type == "duplicate"]


def kept(paths: StudyPaths) -> list[str]:
    return sorted(f.relative_to(paths.records).as_posix() for f in paths.records.rglob("*duplicate*"))


@pytest.mark.parametrize(("script", "differing"), SCRIPTS.values(), ids=SCRIPTS)
def test_what_a_killed_run_left_whole_is_drawn_again_and_compared(
    desk: Desk, script: str, differing: int
) -> None:
    paths = third(desk, script)
    kill(desk, "shard-stored", 3)
    unit, shard = left_whole(paths)
    first = paths.shard_records(unit, shard).read_bytes()
    result = desk.collect()
    assert result.complete
    (found,) = duplicates(paths)
    assert (found["unit"], found["shard"], found["attempt"]) == (unit, shard, 1)
    assert (found["lines"], found["differing"]) == (2, differing)
    assert dict(result.duplicates) == {unit: Copies(copies=1, differing=differing)}
    name = f"{unit}/{shard:05d}.duplicate-1.jsonl.gz"
    assert kept(paths) == ([name] if differing else [])
    if differing:
        assert (paths.records / name).read_bytes() == first
    assert (paths.shard_records(unit, shard).read_bytes() == first) == (not differing)
    check_whole(paths)
    # It stands after the shard's own entry, and the shard was begun twice.
    kinds = [e.type for e in ledger(paths) if (e.body.get("unit"), e.body.get("shard")) == (unit, shard)]
    assert kinds == ["attempt", "attempt", "shard-stored", "duplicate"]


@pytest.mark.parametrize(("script", "differing"), SCRIPTS.values(), ids=SCRIPTS)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("kind", ["shard-stored", "duplicate"])
def test_a_second_kill_while_it_is_compared_changes_nothing(
    desk: Desk, kind: str, after: bool, script: str, differing: int
) -> None:
    paths = third(desk, script)
    kill(desk, "shard-stored")
    unit, shard = left_whole(paths)
    kill(desk, kind, after=after)
    result = desk.collect()
    # Killed before its entry, the result of the second run is another that is left whole.
    copies = 2 if kind == "shard-stored" and not after else 1
    assert [(b["unit"], b["shard"], b["differing"]) for b in duplicates(paths)] == [
        (unit, shard, differing)
    ] * copies
    assert result.duplicates[unit].copies == copies
    names = [f"{unit}/{shard:05d}.duplicate-{k + 1}.jsonl.gz" for k in range(copies)]
    assert kept(paths) == (names if differing else [])
    check_whole(paths)


def test_draws_that_differ_are_counted(desk: Desk) -> None:
    """Only the first request of each shard is another each time."""
    script = "import os, sys\n" + SIMULATE.replace(
        "% 7}", "% 7}{os.urandom(8).hex() if seed % 2 == 0 else 0}"
    )
    paths = third(desk, script)
    kill(desk, "shard-stored")
    assert desk.collect().complete
    assert [b["differing"] for b in duplicates(paths)] == [1]
    check_whole(paths)


TORN: dict[str, Callable[[bytes], bytes]] = {
    "half of its bytes": lambda data: data[: len(data) // 2],
    "a line too few": lambda data: gzip.compress(gzip.decompress(data).splitlines(keepends=True)[0], mtime=0),
    "another seed": lambda data: gzip.compress(
        gzip.decompress(data).replace(b'"seed":"50', b'"seed":"60'), mtime=0
    ),
    "bytes after it": lambda data: data + b"x",
    "nothing": lambda data: b"",
}


@pytest.mark.parametrize("name", TORN)
def test_what_is_not_whole_is_no_result(desk: Desk, name: str) -> None:
    paths = third(desk, RANDOM)
    kill(desk, "shard-stored")
    unit, shard = left_whole(paths)
    file = paths.shard_records(unit, shard)
    file.write_bytes(TORN[name](file.read_bytes()))
    assert desk.collect().complete
    assert (duplicates(paths), kept(paths)) == ([], [])
    assert f"records/{unit}/{shard:05d}.jsonl.gz: left by a run that was killed; removed" in desk.notes
    check_whole(paths)


def test_a_result_without_its_meta_is_whole(desk: Desk) -> None:
    paths = third(desk, RANDOM)
    kill(desk, "shard-stored")
    paths.shard_meta(*left_whole(paths)).unlink()
    assert desk.collect().complete
    assert [b["differing"] for b in duplicates(paths)] == [2]
    check_whole(paths)


def test_an_earlier_edition_compares_nothing(desk: Desk) -> None:
    paths = third(desk, RANDOM, edition=2, attempts=1)
    kill(desk, "shard-stored")
    unit, shard = left_whole(paths)
    assert desk.collect().complete
    assert f"records/{unit}/{shard:05d}.jsonl.gz: left by a run that was killed; removed" in desk.notes
    assert (duplicates(paths), kept(paths)) == ([], [])
    check_whole(paths)


def test_an_interrupted_run_keeps_what_waits_and_does_not_commit_it(desk: Desk) -> None:
    paths = third(desk, RANDOM)
    kill(desk, "shard-stored")
    unit, shard = left_whole(paths)
    data = paths.shard_records(unit, shard).read_bytes()
    stop_after(desk, 0)
    name = f"{unit}/{shard:05d}.duplicate-1.jsonl.gz"
    assert kept(paths) == [name]
    assert name not in git(paths.repository, "ls-files")
    assert types_of(paths)[-1] == "collection-ended"
    # Until it is compared the study is not in order, and what to do is said.
    failed = [step for step in verify_report(paths) if step.status == "failed"]
    assert [step.number for step in failed] == [7, 9]
    assert "prereg collect" in (failed[0].next_step or "")
    assert desk.collect().complete
    assert [(b["unit"], b["differing"]) for b in duplicates(paths)] == [(unit, 2)]
    assert (paths.records / name).read_bytes() == data
    check_whole(paths)


def test_what_waits_is_drawn_first(desk: Desk) -> None:
    paths = third(desk, RANDOM)
    kill(desk, "shard-stored", 6)
    place = left_whole(paths)
    assert desk.collect(workers=1).complete
    runs = [i for i, e in enumerate(ledger(paths)) if e.type == "collection-started"]
    first = ledger(paths)[runs[-1] + 1]
    assert (first.type, first.body["unit"], first.body["shard"]) == ("attempt", *place)


def test_a_unit_that_fails_has_nothing_to_compare_with(desk: Desk) -> None:
    marks = desk.repository.parent / "marks"
    dies = f"import os, signal\nif os.path.exists({str(marks)!r}): os.kill(os.getppid(), signal.SIGKILL)\n"
    paths = third(desk, dies + RANDOM)
    kill(desk, "shard-stored")
    unit, shard = left_whole(paths)
    marks.touch()
    result = desk.collect()
    assert result.complete and unit in result.invalid
    assert (duplicates(paths), kept(paths)) == ([], [])
    said = f"records/{unit}/{shard:05d}.duplicate-1.jsonl.gz: its unit failed"
    assert any(note.startswith(said) for note in desk.notes)
    for step in verify_report(paths):
        assert step.status != "failed", step


class Twice(LocalExecutor):
    """Brings each result of one unit twice, the second time tampered with."""

    unit = "main.two.b"

    def run(self, *args: Any, **kwargs: Any) -> Generator[Finished | Failed, None, None]:
        for result in super().run(*args, **kwargs):
            yield result
            if isinstance(result, Finished) and result.job.shard.unit.id == self.unit:
                again = copy.deepcopy(result.replies)
                self.tamper(again)
                kwargs["advance"](result.job, len(again))
                yield Finished(job=result.job, replies=again, started=result.started, ended=result.ended)

    @staticmethod
    def tamper(replies: list[Any]) -> None: ...


class TwiceOtherwise(Twice):
    @staticmethod
    def tamper(replies: list[Any]) -> None:
        replies[1]["draws"][0]["outcome"] = {"value": "another"}


@pytest.mark.parametrize(("executor", "differing"), [(Twice, 0), (TwiceOtherwise, 1)])
def test_a_second_result_that_an_executor_brings_is_entered(
    desk: Desk, executor: type[Twice], differing: int
) -> None:
    paths = third(desk)
    result = desk.collect(executor=executor)
    assert result.complete
    assert desk.advanced == 16
    assert [(b["unit"], b["differing"]) for b in duplicates(paths)] == [(Twice.unit, differing)] * 2
    assert len(kept(paths)) == (2 if differing else 0)
    assert result.duplicates[Twice.unit] == Copies(copies=2, differing=2 * differing)
    check_whole(paths)
    assert types_of(paths).count("shard-stored") == 8


def test_what_an_executor_brought_is_not_lost_to_a_kill(desk: Desk) -> None:
    """Killed between the file of a second result and its entry, which the next run makes."""
    paths = third(desk)
    process = collect_process(
        desk,
        before=KILLER.format(kind="duplicate", nth=1, after=False)
        + "import sys\nsys.path.insert(0, 'tests/unit')\nimport test_collect_duplicates as here\n"
        "collect_study.__kwdefaults__['executor'] = here.TwiceOtherwise\n",
    )
    _, error = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, error
    assert len(kept(paths)) == 1
    assert desk.collect().complete
    assert [(b["unit"], b["differing"]) for b in duplicates(paths)] == [(Twice.unit, 1)]
    check_whole(paths)


def test_each_attempt_has_its_own_second_results(desk: Desk) -> None:
    """The second attempt of a unit is killed over a shard."""
    marks = desk.repository.parent / "marks"
    marks.mkdir()
    dies = (
        f"import os, signal, sys\nif sys.argv[2] == '5000003' and not os.listdir({str(marks)!r}):\n"
        f"    open(os.path.join({str(marks)!r}, 'x'), 'x').close()\n"
        "    os.kill(os.getppid(), signal.SIGKILL)\n"
    )
    paths = third(desk, dies + RANDOM)
    stored = 3 * 2 + 1  # three units whole, and one shard of the first attempt of the other
    kill(desk, "shard-stored", stored + 1)
    assert desk.collect().complete
    (found,) = duplicates(paths)
    assert (found["unit"], found["attempt"], found["differing"]) == ("main.one.a", 2, 2)
    (name,) = kept(paths)
    assert name.startswith("main.one.a.attempt-2/")
    assert json.loads(gzip.decompress((paths.records / name).read_bytes()).splitlines()[0])["attempt"] == 2
    check_whole(paths)
