"""Trees as jobs of the local executor, against workers that speak the wire and know no engine."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from prereg.collect.ceilings import Clocks
from prereg.collect.executors import crew
from prereg.collect.executors.base import Failed, Finished, Job, Opening, Site
from prereg.collect.executors.local import LocalExecutor
from prereg.collect.network import Isolation
from prereg.collect.trees import tree_of
from prereg.model.plan import Shard
from prereg.model.record import Network
from prereg.model.study import Ceilings, Unit

SHARD = Shard(
    unit=Unit(stage="walked", configuration="c", arm="on"),
    index=0,
    first_request=0,
    requests=4,
    rows=1,
    first_seed=100,
    channel="exact",
)
FULL = {
    "mode": "full",
    "budget": {"runs": None, "seconds": None, "mass": 0},
    "close_last": False,
    "close_floor": 0,
}
BOUNDED = {**FULL, "mode": "best-first", "budget": {"runs": 5, "seconds": None, "mass": 0}}

WORKER = """
import json, os, sys
good = {"checked": 1, "different": 0, "differences": [], "ok": True}
walk = {"runs": 1, "different": 0, "differences": [], "largest": 0.0, "ok": True}
def leaf(*choices):
    return {"choices": list(choices), "kinds": "t" * len(choices), "p": [0.5] * len(choices),
            "weight": 0.5 ** len(choices), "outcome": {"tokens": list(choices), "finish": None},
            "counters": {"proposals": 1, "verifications": 1, "accepted": 0}, "digest": "a" * 32,
            "closed": False, "filled": 0}
def checks():
    return {"walk": walk, "replay": dict(good), "refill": {"eligible": 0, "expanded": False, **good},
            "closed": {"closed": 0, "reopened": False, **good}, "interference": dict(good),
            "randomness": {"unaccounted": 0, "ok": True}}
def main():
    for line in sys.stdin:
        r = json.loads(line)
        def say(**value): print(json.dumps({"id": r["id"], **value}), flush=True)
        with open(os.path.join(os.path.dirname(__file__), "asked"), "a") as log:
            log.write(json.dumps(r) + "\\n")
        if r["op"] == "open": say(ok={})
        elif r["op"] == "admit": say(ok={k: v for k, v in checks().items() if k != "walk"})
        elif r["op"] == "choices":
BODY
    return 0
"""

PARTS = """
            at = (r["prefixes"] or [{"choices": []}])[0]["choices"]
            rest = [{"choices": [1], "except": [], "weight": 0.5}] if not at else []
            say(leaf=leaf(1 if at else 0))
            say(ok={"runs": 1, "unexplored": 0.0, "frontier": rest, "admission": checks()})
"""
RESTARTS = """
            say(leaf=leaf(0))
            say(restart={"reason": "refill"})
            say(leaf=leaf(1))
            say(ok={"runs": 3, "unexplored": 0.5, "frontier": [], "admission": checks()})
"""
DIES = """
            if r["prefixes"]: os._exit(7)
            say(leaf=leaf(0))
            say(ok={"runs": 1, "unexplored": 0.0, "frontier": [{"choices": [1], "except": [], "weight": 0.5}],
                    "admission": checks()})
"""


class Place:
    """A site whose harness is one worker program."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.advanced = 0
        (folder / "code" / "harness").mkdir(parents=True)
        (folder / "code" / "harness" / "__init__.py").touch()
        (folder / "env" / "bin").mkdir(parents=True)
        (folder / "env" / "bin" / "python").symlink_to(sys.executable)

    @property
    def journals(self) -> list[Path]:
        return sorted((self.folder / "walks" / "seal").glob("walked.c.on-*.jsonl"))

    def asked(self, op: str) -> list[dict[str, Any]]:
        lines = (self.folder / "code" / "harness" / "asked").read_text().splitlines()
        return [value for value in map(json.loads, lines) if value["op"] == op]

    def run(
        self,
        body: str,
        walk: dict[str, Any],
        workers: int = 1,
        *,
        network: Network = "not-cut",
        fingerprint: str = "b" * 64,
        attempt: int = 1,
        again: int = 0,
    ) -> Finished | Failed:
        program = WORKER.replace("BODY\n", body.lstrip("\n"))
        (self.folder / "code" / "harness" / "worker.py").write_text(program)
        (self.folder / "code" / "harness" / "asked").write_text("")
        self.advanced = 0
        site = Site(
            code=self.folder / "code",
            study=self.folder,
            scratch=self.folder / "scratch",
            environments={"plain": self.folder / "env"},
            fingerprints={"plain": fingerprint},
            isolation=Isolation(network=network, reason="a test", prefix=()),
            workers=workers,
            request_seconds=20.0,
            journals=self.folder / "walks" / "seal",
            now=lambda: datetime.now(UTC),
        )
        opening = Opening(build="plain", configuration={"id": "c"}, model=None, prompt=None)
        arm = {"id": "on", "role": "test", "speculation": True}
        job = Job(shard=SHARD, opening=opening, arm=arm, walk=walk, attempt=attempt, again=again)
        ceilings = Ceilings(study_seconds=60, unit_seconds=60, request_seconds=20, on_ceiling="INVALID")

        def advance(_: Job, leaves: int) -> None:
            self.advanced += leaves

        results = LocalExecutor(site).run(
            [job], limits=Clocks(ceilings), wanted=lambda _: True, begin=None, advance=advance
        )
        (result,) = list(results)
        return result


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def leaves(result: Finished | Failed) -> list[tuple[int, ...]]:
    assert isinstance(result, Finished), result.reason
    records, meta = tree_of(result, seal="a" * 64, drafter=True)
    assert meta.admission.interference.checked == 1
    return [record.choices for record in records]


def test_a_restart_makes_the_leaves_before_it_void(place: Place) -> None:
    result = place.run(RESTARTS, BOUNDED)
    assert leaves(result) == [(1,)]
    assert place.advanced == 1
    (asked,) = place.asked("choices")
    assert asked["seeds"] == ["100", "101", "102", "103"]
    assert asked["arm"] == {"id": "on", "role": "test", "speculation": True}
    assert {name: asked[name] for name in BOUNDED} == BOUNDED
    assert not place.journals


def test_a_whole_tree_is_walked_in_parts_and_checked_once(place: Place) -> None:
    result = place.run(PARTS, FULL)
    assert leaves(result) == [(0,), (1,)]
    assert place.advanced == 2
    assert isinstance(result, Finished) and result.tree["runs"] == 2
    assert [r["prefixes"] for r in place.asked("choices")] == [
        None,
        [{"choices": [1], "except": [], "weight": 0.5}],
    ]
    assert {r["close_last"] for r in place.asked("choices")} == {False}
    (admit,) = place.asked("admit")
    assert admit["seeds"] == ["100", "101", "102", "103"]
    assert place.asked("law") == []


def test_a_part_that_is_there_is_not_walked_again(place: Place) -> None:
    assert isinstance(place.run(DIES, FULL), Failed)
    (journal,) = place.journals
    assert len(journal.read_bytes().splitlines()) == 2
    assert leaves(place.run(PARTS, FULL)) == [(0,), (1,)]
    (asked,) = place.asked("choices")
    assert asked["prefixes"] == [{"choices": [1], "except": [], "weight": 0.5}]


@pytest.mark.parametrize("other", [{"network": "cut"}, {"fingerprint": "c" * 64}])
def test_a_part_of_other_conditions_is_no_part(place: Place, other: dict[str, Any]) -> None:
    """What was walked with the network open is not the record of a walk that says that it was cut."""
    assert isinstance(place.run(DIES, FULL), Failed)
    assert leaves(place.run(PARTS, FULL, **other)) == [(0,), (1,)]
    assert place.asked("choices")[0]["prefixes"] is None
    assert len(place.asked("choices")) == len(place.journals) == 2
    # Under the first conditions the walk goes on where it was.
    assert leaves(place.run(PARTS, FULL)) == [(0,), (1,)]
    assert len(place.asked("choices")) == 1


@pytest.mark.parametrize("other", [{"attempt": 2}, {"again": 1}, {"attempt": 2, "again": 1}])
def test_a_part_of_another_attempt_or_result_is_no_part(place: Place, other: dict[str, Any]) -> None:
    """What an earlier attempt walked, or the result that this one is compared with, must not enter it."""
    assert isinstance(place.run(DIES, FULL), Failed)
    assert leaves(place.run(PARTS, FULL, **other)) == [(0,), (1,)]
    assert place.asked("choices")[0]["prefixes"] is None
    assert len(place.journals) == 2
    # A run that is killed goes on where it was, in each of them.
    assert leaves(place.run(PARTS, FULL, **other)) == [(0,), (1,)]
    assert place.asked("choices") == []


def test_records_of_a_tree_say_which_attempt_they_are_of(place: Place) -> None:
    result = place.run(PARTS, FULL, attempt=2)
    assert isinstance(result, Finished)
    records, _ = tree_of(result, seal="a" * 64, drafter=True)
    assert [record.attempt for record in records] == [2, 2]


def test_a_worker_that_dies_over_a_part_loses_the_tree(place: Place) -> None:
    result = place.run(DIES, FULL)
    assert isinstance(result, Failed) and "exit status 7" in result.reason
    assert place.advanced == 0


def test_what_is_no_part_of_a_tree_loses_the_tree(place: Place) -> None:
    result = place.run('            say(ok={"runs": 1})\n', FULL)
    assert isinstance(result, Failed) and "no part of a tree" in result.reason
    result = place.run(PARTS.replace("say(leaf=leaf(1 if at else 0))", 'say(leaf={"choices": [0]})'), FULL)
    assert isinstance(result, Failed) and "no part of a tree" in result.reason


def test_an_engine_that_refuses_loses_the_tree(place: Place) -> None:
    body = '            say(error={"code": "unsupported", "message": "it draws as it likes"})\n'
    for walk in (FULL, BOUNDED):
        result = place.run(body, walk)
        assert isinstance(result, Failed)
        assert result.reason == "the engine refused: it draws as it likes (unsupported)"


@pytest.mark.parametrize("workers", [2, 3])
def test_an_idle_seat_helps(place: Place, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "HELP_AFTER", 0.0)
    body = PARTS.replace("say(leaf=leaf(1 if at else 0))", WAITS + "            say(leaf=leaf(*(at or [0])))")
    body = body.replace('[{"choices": [1], "except": [], "weight": 0.5}]', FRONTIER % workers)
    result = place.run(body, FULL, workers)
    assert leaves(result) == [(i,) for i in range(workers + 1)]
    assert len(place.asked("open")) == workers


def test_what_a_helper_gets_that_is_no_part_loses_the_tree(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew, "HELP_AFTER", 0.0)
    body = PARTS.replace('            say(ok={"runs": 1,', WAITS + '            say(ok={"runs": 1,')
    body = body.replace('"frontier": rest,', '**({} if at else {"frontier": rest}),')
    body = body.replace('[{"choices": [1], "except": [], "weight": 0.5}]', FRONTIER % 2)
    result = place.run(body, FULL, 2)
    assert isinstance(result, Failed) and "no part of a tree: KeyError('frontier')" in result.reason
    assert len(place.asked("open")) == 2


FRONTIER = '[{"choices": [i + 1], "except": [], "weight": 0.1} for i in range(%d)]'
WAITS = """
            import time
            here = os.path.dirname(__file__)
            if at: open(os.path.join(here, f"part-{at[0]}"), "w").close()
            until = time.monotonic() + 15
            count = lambda: sum(name.startswith("part-") for name in os.listdir(here))
            while at and count() < 2 and time.monotonic() < until: time.sleep(0.01)
"""
