"""Edition 3: a unit that fails is tried again, whole, on the same seeds, in a ledger that tells of it."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import typer
from test_collect_kit import (
    AUTHOR,
    SIMULATE,
    Desk,
    StopAfter,
    body_of,
    check_whole,
    collect_process,
    draws_of,
    expected_draws,
    fresh_desk,
    make_study,
    types_of,
)

from prereg.cli.collect import collect
from prereg.cli.status import status
from prereg.collect.executors.base import Failed, Finished
from prereg.collect.executors.local import LocalExecutor
from prereg.collect.runner import STUDY_CEILING, collect_study
from prereg.model.attempts import Tried
from prereg.seal.verify import verify_report, verify_study
from prereg.store.layout import StudyPaths
from prereg.store.ledger import read_ledger

CEILINGS = {"study_seconds": 600, "unit_seconds": 300, "request_seconds": 20, "on_ceiling": "INVALID"}
UNIT = "main.one.a"


@pytest.fixture
def desk(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return fresh_desk(tmp_path, tmp_path_factory, monkeypatch)


def fails(desk: Desk, times: int, act: str = "os.kill(os.getppid(), signal.SIGKILL)") -> str:
    """A command whose fourth request of the first unit fails so many times, and then goes well."""
    marks = desk.repository.parent / "marks"
    marks.mkdir()
    return (
        "import os, signal, sys, time\n"
        f"there = len(os.listdir({str(marks)!r}))\n"
        f"if sys.argv[2] == '5000003' and there < {times}:\n"
        f"    open(os.path.join({str(marks)!r}, str(there)), 'x').close()\n"
        f"    {act}\n" + SIMULATE
    )


def third(desk: Desk, script: str = SIMULATE, **changes: Any) -> StudyPaths:
    """A sealed study of edition 3; each of its four units has eight requests in four shards."""
    plan = {
        "edition": 3,
        "attempts": 2,
        "sampling": {arm: {"draws": 8, "rows": 1, "shard_requests": 2} for arm in "ab"},
        **changes,
    }
    return make_study(desk, script=script, **plan)


def entries(paths: StudyPaths, kind: str, unit: str = UNIT) -> list[dict[str, Any]]:
    """The bodies of a unit's entries of that type."""
    found = read_ledger(paths.ledger.read_bytes())
    return [e.body for e in found if e.type == kind and e.body["unit"] == unit]


def check_begun(paths: StudyPaths) -> None:
    """Before each `shard-stored` stands an `attempt` of the same three, of the same run."""
    begun: set[tuple[str, int, int]] = set()
    for entry in read_ledger(paths.ledger.read_bytes()):
        if entry.type == "collection-started":
            begun = set()
        elif entry.type in ("attempt", "shard-stored"):
            place = (entry.body["unit"], entry.body["shard"], entry.body["attempt"])
            assert (place in begun) == (entry.type == "shard-stored"), entry
            begun.add(place)


def test_each_shard_is_said_to_be_begun_before_it_is_stored(desk: Desk) -> None:
    paths = third(desk)
    assert desk.collect().complete
    check_whole(paths)
    check_begun(paths)
    assert types_of(paths).count("attempt") == types_of(paths).count("shard-stored") == 16


def test_it_is_said_before_anything_is_drawn(desk: Desk) -> None:
    """The command looks at the ledger: the entry of its shard is there before its first draw."""
    ledger = desk.paths("toy").ledger
    paths = third(desk, f"import sys\nsys.stdout.write('')\ntold = open({str(ledger)!r}).read()\n" + TOLD)
    assert desk.collect().complete
    lines = [line for file in paths.records.rglob("*.gz") for line in unpacked(file)]
    assert len(lines) == 32
    assert {line["outcome"]["value"] for line in lines} == {"told"}


TOLD = """import json
arm, seed = sys.argv[1], int(sys.argv[2])
lines = [json.loads(line)["body"] for line in told.splitlines() if '"type":"attempt"' in line]
units = {5000000: "main.one.a", 5000008: "main.one.b", 5000016: "main.two.a", 5000024: "main.two.b"}
first, unit = max((first, unit) for first, unit in units.items() if first <= seed)
place = {"unit": unit, "shard": (seed - first) // 2, "attempt": 1}
print(json.dumps({"value": "told" if place in lines else "not told"}))
"""


def unpacked(file: Path) -> list[dict[str, Any]]:
    import gzip

    return [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]


def test_a_worker_that_dies_once_is_tried_again_after_the_others(desk: Desk) -> None:
    paths = third(desk, fails(desk, 1))
    result = desk.collect()
    assert (result.complete, dict(result.invalid), result.attempts) == (True, {}, 2)
    tried = result.tried[UNIT]
    assert (tried.attempt, tried.over, tried.cause) == (2, False, "engine")
    assert (result.stored, result.planned) == (16, 16)
    check_whole(paths)
    check_begun(paths)
    (failed,) = entries(paths, "unit-invalid")
    assert (failed["attempt"], failed["cause"]) == (1, "engine")
    assert {body["shard"] for body in entries(paths, "shard-stored") if body["attempt"] == 2} == {0, 1, 2, 3}
    # After the others: nothing but this unit follows its failure and theirs.
    ledger = read_ledger(paths.ledger.read_bytes())
    second = min(e.seq for e in ledger if e.type == "attempt" and e.body["attempt"] == 2)
    assert all(e.body["unit"] == UNIT for e in ledger[second:] if e.type == "shard-stored")
    # The files of each attempt lie in a folder of their own and say which it is.
    for line in unpacked(paths.shard_records(UNIT, 0, 2)):
        assert line["attempt"] == 2
    assert json.loads(paths.shard_meta(UNIT, 3, 2).read_bytes())["attempt"] == 2
    assert paths.shard_records(UNIT, 0, 2).parent.name == f"{UNIT}.attempt-2"
    assert f"{UNIT} failed in attempt 1 of 2, and will be tried again: {failed['reason']}" in desk.notes
    assert f"{UNIT} is tried again: attempt 2 of 2" in desk.notes
    assert desk.advanced == 32  # what was drawn in vain is not counted
    ended = body_of(paths, "collection-ended")
    assert (ended["complete"], ended["invalid"]) == (True, [])
    assert ended["stored"] == types_of(paths).count("shard-stored") >= 16


def test_a_worker_that_always_dies_is_over_after_the_last_attempt(desk: Desk) -> None:
    paths = third(desk, fails(desk, 9))
    result = desk.collect()
    assert (result.complete, set(result.invalid), result.left_open) == (True, {UNIT}, frozenset())
    assert [b["attempt"] for b in entries(paths, "unit-invalid")] == [1, 2]
    assert result.tried[UNIT].over and result.tried[UNIT].attempt == 2
    assert any(note.startswith(f"{UNIT} is INVALID after attempt 2 of 2: ") for note in desk.notes)
    verified = verify_study(paths)
    assert (verified.state, set(verified.invalid)) == ("collected", {UNIT})
    assert body_of(paths, "collection-ended")["invalid"] == [UNIT]
    got, expected = draws_of(paths), expected_draws(paths)
    assert all(got[unit] == expected[unit] for unit in expected if unit != UNIT)


def test_one_attempt_is_the_last(desk: Desk) -> None:
    paths = third(desk, fails(desk, 1), attempts=1)
    assert set(desk.collect().invalid) == {UNIT}
    assert len(entries(paths, "unit-invalid")) == 1
    assert any(note.startswith(f"{UNIT} is INVALID: ") for note in desk.notes)
    assert verify_study(paths).state == "collected"


def test_an_earlier_edition_has_none_of_it(desk: Desk) -> None:
    paths = third(desk, fails(desk, 1), edition=2, attempts=1)
    assert set(desk.collect().invalid) == {UNIT}
    assert "attempt" not in types_of(paths)
    assert "cause" not in entries(paths, "unit-invalid")[0]
    assert verify_study(paths).state == "collected"


def test_replies_that_are_no_records_are_the_engine_s_failure(desk: Desk) -> None:
    paths = third(desk)

    class LiesOnce(LocalExecutor):
        lied = False

        def run(self, *args: Any, **kwargs: Any) -> Generator[Finished | Failed, None, None]:
            for result in super().run(*args, **kwargs):
                if isinstance(result, Finished) and result.job.shard.unit.id == UNIT and not LiesOnce.lied:
                    LiesOnce.lied = True
                    result.replies[0]["seed"] = "7"
                yield result

    assert desk.collect(executor=LiesOnce).complete
    assert [(b["attempt"], b["cause"]) for b in entries(paths, "unit-invalid")] == [(1, "engine")]
    assert desk.advanced == 32
    check_whole(paths)


def test_a_run_that_is_interrupted_leaves_the_next_attempt_to_the_next_run(desk: Desk) -> None:
    """The unit failed, and the run ended before the others were done."""
    paths = third(desk, fails(desk, 1) + "time.sleep(0.05)\n")

    class StopAfterFailure(StopAfter):
        shards = 4

    assert not desk.collect(executor=StopAfterFailure, workers=1).complete
    assert len(entries(paths, "unit-invalid")) == 1
    assert [b["attempt"] for b in entries(paths, "attempt")] == [1, 1]
    for step in verify_report(paths):
        assert step.status != "failed", step
    desk.notes.clear()
    desk.advanced = 0
    result = desk.collect()
    assert result.complete
    assert desk.begun is not None and desk.begun[1] + desk.advanced == 32 == desk.begun[0]
    assert f"{UNIT} is tried again: attempt 2 of 2" in desk.notes
    check_whole(paths)
    check_begun(paths)
    # What failed before comes last.
    ledger = read_ledger(paths.ledger.read_bytes())
    second = min(e.seq for e in ledger if e.type == "attempt" and e.body["attempt"] == 2)
    assert all(e.body["unit"] == UNIT for e in ledger[second:] if e.type == "attempt")


def test_a_killed_run_begins_its_shards_again(desk: Desk) -> None:
    """Each begin is told: the ledger says how often a shard was begun."""
    marks = desk.repository.parent / "marks"
    slow = f"import os, time\nif not os.path.exists({str(marks)!r}): time.sleep(30)\n"
    paths = third(desk, slow + SIMULATE)
    process = collect_process(desk)
    until = time.monotonic() + 60
    while types_of(paths).count("attempt") < 2 and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    marks.mkdir()
    assert desk.collect().complete
    check_whole(paths)
    check_begun(paths)
    assert [b["shard"] for b in entries(paths, "attempt")].count(0) == 2


CAUSES = [
    ("request-ceiling", {"request_seconds": 2}, False),
    ("unit-ceiling", {"unit_seconds": 4}, True),
]


@pytest.mark.parametrize(("cause", "ceiling", "final"), CAUSES, ids=[c[0] for c in CAUSES])
@pytest.mark.parametrize("word", ["INVALID", "INCONCLUSIVE"])
def test_a_ceiling_is_the_cause_and_says_what_the_protocol_says(
    desk: Desk, cause: str, ceiling: dict[str, int], final: bool, word: str
) -> None:
    script = fails(desk, 9, "time.sleep(60)")
    paths = third(desk, script, ceilings={**CEILINGS, **ceiling, "on_ceiling": word})
    result = desk.collect()
    assert (result.complete, set(result.invalid)) == (True, {UNIT})
    told = entries(paths, "unit-invalid")
    assert [b["cause"] for b in told] == [cause] * (1 if final else 2)
    assert result.left_open == (frozenset({UNIT}) if word == "INCONCLUSIVE" else frozenset())
    said = "left open" if word == "INCONCLUSIVE" else "INVALID"
    attempt = told[-1]["attempt"]
    assert any(n.startswith(f"{UNIT} is {said} after attempt {attempt} of 2: ") for n in desk.notes), (
        desk.notes
    )
    assert verify_study(paths).state == "collected"


@pytest.mark.parametrize("word", ["INVALID", "INCONCLUSIVE"])
def test_the_ceiling_of_the_study_is_over_for_all_that_is_not_drawn(desk: Desk, word: str) -> None:
    ceilings = {**CEILINGS, "study_seconds": 2, "on_ceiling": word}
    paths = third(desk, "import time\ntime.sleep(0.8)\n" + SIMULATE, attempts=3, ceilings=ceilings)
    result = desk.collect()
    assert result.complete and result.invalid
    assert STUDY_CEILING in result.invalid.values()
    found = [e.body for e in read_ledger(paths.ledger.read_bytes()) if e.type == "unit-invalid"]
    assert {(b["cause"], b["attempt"]) for b in found} == {("study-ceiling", 1)}
    assert len(found) == len(result.invalid)
    assert result.left_open == (set(result.invalid) if word == "INCONCLUSIVE" else set())
    assert verify_study(paths).state == "collected"


def test_a_unit_that_waits_for_its_next_attempt_is_over_with_the_study_s_time(desk: Desk) -> None:
    script = fails(desk, 1) + "time.sleep(0.4)\n"
    paths = third(desk, script, ceilings={**CEILINGS, "study_seconds": 4})
    assert desk.collect(workers=1).complete
    told = entries(paths, "unit-invalid")
    assert [(b["attempt"], b["cause"]) for b in told] == [(1, "engine"), (2, "study-ceiling")]
    assert verify_study(paths).tried[UNIT] == Tried(
        attempt=2, over=True, cause="study-ceiling", reason=STUDY_CEILING
    )


def test_collect_and_status_show_what_was_tried_again_and_what_came_twice(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = third(desk, fails(desk, 1))

    class Twice(LocalExecutor):
        def run(self, *args: Any, **kwargs: Any) -> Generator[Finished | Failed, None, None]:
            for result in super().run(*args, **kwargs):
                yield result
                if isinstance(result, Finished) and result.job.shard.unit.id == "main.two.b":
                    result.replies[0]["draws"][0]["outcome"] = {"value": "another"}
                    yield result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collect_study, "__kwdefaults__", {"workers": None, "executor": Twice})
        with pytest.raises(typer.Exit) as ended:
            collect(paths.root, key=str(desk.key_file), principal=AUTHOR, workers=2, as_json=True)
        assert ended.value.exit_code == 0
    said = json.loads(capsys.readouterr().out)
    tried = {"attempt": 2, "over": False, "cause": "engine"}
    assert said["attempts"]["allowed"] == 2
    assert said["attempts"]["tried_again"] == [UNIT]
    assert tried.items() <= said["attempts"]["units"][UNIT].items()
    assert said["duplicates"] == {"main.two.b": {"copies": 4, "differing": 4}}
    assert (said["invalid"], said["left_open"], said["shards"]["stored"]) == ({}, [], 16)
    status(paths.root, as_json=True)
    again = json.loads(capsys.readouterr().out)
    assert {name: again[name] for name in ("attempts", "duplicates", "invalid", "left_open")} == {
        name: said[name] for name in ("attempts", "duplicates", "invalid", "left_open")
    }
    assert (again["state"], again["shards"], again["draws"]) == ("collected", 16, 32)
    status(paths.root, as_json=False)
    shown = capsys.readouterr().err
    assert re.search(rf"{UNIT} +│ +2 of 2 +│ stored whole +│ engine: ", shown), shown
    assert re.search(r"main\.two\.b +│ +4 +│ +4 ", shown), shown
    assert "The engine did not return the same for the same seed." in shown


@pytest.mark.parametrize(("word", "shown"), [("INVALID", "INVALID"), ("INCONCLUSIVE", "left open")])
def test_status_calls_a_lost_unit_what_the_protocol_does(
    desk: Desk, word: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ceilings = {**CEILINGS, "request_seconds": 2, "on_ceiling": word}
    paths = third(desk, fails(desk, 1, "time.sleep(60)"), attempts=1, ceilings=ceilings)
    with pytest.raises(typer.Exit):
        collect(paths.root, key=str(desk.key_file), principal=AUTHOR, workers=2, as_json=False)
    said = capsys.readouterr().err
    title = "Units that a ceiling left open" if word == "INCONCLUSIVE" else "Lost units, INVALID"
    assert title in said
    status(paths.root, as_json=False)
    assert re.search(rf"^  {shown} +{UNIT}: ", capsys.readouterr().err, re.MULTILINE)
    status(paths.root, as_json=True)
    assert json.loads(capsys.readouterr().out)["left_open"] == ([UNIT] if word == "INCONCLUSIVE" else [])
