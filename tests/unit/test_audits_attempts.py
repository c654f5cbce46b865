"""Whole studies of edition 3: units tried again, second results, ceilings; and what is refused of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from audits_kit import failed, look, make_keys
from audits_plan import Plan
from audits_second import Second
from audits_slow import D, Json
from audits_third import (
    ON,
    Step,
    begin,
    build,
    copy,
    crash,
    draw,
    end,
    fail,
    rest,
    start,
    third,
    third_exact,
    walks,
)  # fmt: skip

from audits.report import text


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_keys(tmp_path_factory.mktemp("audit-keys"))


def _probe(name: str, value: Any) -> Any:
    """Only the second attempt at probe's on arm has outcomes beyond the law."""
    if name == "record" and value["unit"] == ON and value["attempt"] == 2 and value["draw"] % 2:
        return value | {"outcome": D}
    return value


OFF = "main.probe.off"
QUIET: Json = {"on": lambda c, j: [{"tokens": t, "finish": None} for t in ([1, 2], [1, 3, 0])][j % 2]}
# A plan; the steps of the collection; of `probe` the verdict, its reasons, the attempts, the duplicates.
LIVES: dict[str, tuple[Plan, tuple[Step, ...], str, list[str], list[int], list[list[int]]]] = {
    "in one go": (third(), (start(), *rest(), end()), "FAILS", ["witness", "bound"], [1, 1], []),
    "tried again in the same run": (
        third(), (start(), draw(ON, [0]), fail(ON), *rest(), end()),
        "FAILS", ["witness", "bound"], [1, 2], [[0, 0], [1, 0]],
    ),
    "tried again in a later run": (
        third(), (start(), *rest(ON), fail(ON), end(False), start(), draw(ON), end()),
        "FAILS", ["witness", "bound"], [1, 2], [],
    ),
    "tried a third time": (
        third(), (start(), fail(ON), draw(ON, [2]), fail(ON, "request-ceiling"), *rest(), end()),
        "FAILS", ["witness", "bound"], [1, 3], [[0, 0], [1, 0]],
    ),
    "the same shards in three attempts": (
        third(), (start(), draw(ON, [0]), fail(ON), draw(ON, [0, 1]), fail(ON), *rest(), end()),
        "FAILS", ["witness", "bound"], [1, 3], [[0, 0], [3, 0]],
    ),
    "the same shard in both attempts that were lost": (
        third(_probe, attempts=2, **QUIET),
        (start(), draw(ON, [0, 2]), fail(ON), draw(ON, [0]), fail(ON), *rest(ON), end()),
        "INVALID", ["unit-lost"], [1, 2], [[0, 0], [1, 8]],
    ),
    "a run that was killed": (
        third(),
        (start(), draw(ON, [0]), begin(ON, 1), start(), begin(ON, 1), start(), draw(ON, [1, 2]), *rest(ON),
         end()),
        "FAILS", ["witness", "bound"], [1, 1], [],
    ),
    "only the second attempt counts": (
        third(_probe, **QUIET), (start(), draw(ON, [0, 1]), fail(ON), *rest(), end()),
        "FAILS", ["witness", "bound"], [1, 2], [[0, 0], [2, 16]],
    ),
    "the second attempt was not reached": (
        third(_probe, **QUIET), (start(), *rest(), end()), "NOT_REJECTED", ["none"], [1, 1], [],
    ),
    "lost in every attempt": (
        third(attempts=2), (start(), draw(ON, [0, 2]), fail(ON), draw(ON, [1]), fail(ON), *rest(ON), end()),
        "INVALID", ["unit-lost"], [1, 2], [],
    ),
    "lost in the one attempt": (
        third(attempts=1), (start(), fail(ON), *rest(ON), end()), "INVALID", ["unit-lost"], [1, 1], [],
    ),
    "a ceiling of the unit, and INVALID": (
        third(), (start(), fail(ON, "unit-ceiling"), *rest(ON), end()), "INVALID", ["unit-lost"], [1, 1], [],
    ),
    "a ceiling of the unit, left open": (
        third(on_ceiling="INCONCLUSIVE"),
        (start(), draw(ON, [0]), fail(ON, "unit-ceiling"), *rest(ON), end()),
        "INCONCLUSIVE", ["ceiling"], [1, 1], [],
    ),
    "a ceiling of the study": (
        third(on_ceiling="INCONCLUSIVE"), (start(), *rest(OFF, ON), fail(OFF, "study-ceiling"),
                                           fail(ON, "study-ceiling"), end()),
        "INCONCLUSIVE", ["ceiling"], [1, 1], [],
    ),
    "a ceiling of requests, twice": (
        third(attempts=2, on_ceiling="INCONCLUSIVE"),
        (start(), fail(OFF, "engine"), fail(OFF, "request-ceiling"), *rest(OFF), end()),
        "INCONCLUSIVE", ["ceiling"], [2, 1], [],
    ),
    "the engine after a ceiling of requests": (
        third(attempts=2, on_ceiling="INCONCLUSIVE"),
        (start(), fail(OFF, "request-ceiling"), fail(OFF, "engine"), *rest(OFF), end()),
        "INVALID", ["unit-lost"], [2, 1], [],
    ),
    "one arm by a ceiling, one by the engine": (
        third(attempts=1, on_ceiling="INCONCLUSIVE"),
        (start(), fail(OFF, "engine"), fail(ON, "unit-ceiling"), *rest(OFF, ON), end()),
        "INVALID", ["unit-lost"], [1, 1], [],
    ),
    "one arm by a ceiling, one missing": (
        third(on_ceiling="INCONCLUSIVE", missing="bound"),
        (start(), fail(OFF, "unit-ceiling"), *rest(OFF, ON), end(False)),
        "INVALID", ["unit-lost"], [1, 1], [],
    ),
    "tried again and missing": (
        third(on_ceiling="INCONCLUSIVE", missing="bound"),
        (start(), draw(ON, [1, 2]), fail(ON, "request-ceiling"), *rest(ON), end(False)),
        "INVALID", ["unit-lost"], [1, 2], [],
    ),
    "a ceiling without an oracle": (
        third(on_ceiling="INCONCLUSIVE", rule="event-gap", law=None, allowance=None,
              predictions=[{"id": "fails", "statement": "x", "claim": {
                  "kind": "verdict", "configuration": "probe", "in": ["DIFFERS"]}}]),
        (start(), fail(ON, "unit-ceiling"), *rest(ON), end()), "INCONCLUSIVE", ["ceiling"], [1, 1], [],
    ),
    "the same result twice": (
        third(), (start(), *rest(), copy(ON, 1), copy(ON, 1), end()), "FAILS", ["witness", "bound"], [1, 1],
        [[0, 0], [2, 0]],
    ),
    "the same lines, packed otherwise": (
        third(), (start(), *rest(), copy(ON, 1, packed=lambda data: b"x"), end()),
        "FAILS", ["witness", "bound"], [1, 1], [[0, 0], [1, 0]],
    ),
    "another result": (
        third(), (start(), *rest(), copy(ON, 1, crash(0, 3)), copy(ON, 1), copy(ON, 1, crash(5)), end()),
        "FAILS", ["witness", "bound"], [1, 1], [[0, 0], [3, 3]],
    ),
    "another result in a later run": (
        third(), (start(), *rest(), end(False), start(), copy(OFF, 2, crash(7)), end()),
        "FAILS", ["witness", "bound"], [1, 1], [[1, 1], [0, 0]],
    ),
    "another result of an attempt that counts no more": (
        third(),
        (start(), draw(ON, [0]), fail(ON), copy(ON, 0, crash(2), attempt=1), *rest(),
         copy(ON, 0, crash(1, 2)), end()),
        "FAILS", ["witness", "bound"], [1, 2], [[0, 0], [3, 3]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LIVES)
def test_what_follows_from_whole_studies(tmp_path: Path, keys: Path, name: str) -> None:
    plan, steps, verdict, reasons, attempts, duplicates = LIVES[name]
    b = build(tmp_path, keys, plan, *steps)
    outcome = look(b.folder)
    assert failed(outcome) == {}
    assert outcome.result == "AGREES"
    # The auditor agrees with the slow twin on every value; these are what both say.
    row = json.loads((b.folder / "analysis/decisions.json").read_bytes())["configurations"][1]
    assert (row["verdict"], row["reasons"]) == (verdict, reasons)
    assert [row["attempts"][arm] for arm in ("off", "on")] == attempts
    told = [[*row["duplicates"][arm].values()] for arm in ("off", "on")]
    assert told == (duplicates or [[0, 0], [0, 0]])
    predicted = {one["id"]: one["status"] for one in outcome.predictions}
    lost = verdict == "INVALID" or reasons == ["ceiling"]
    assert predicted["fails"] == ("NOT_DETERMINED" if lost else "HELD" if verdict == "FAILS" else "FAILED")


def test_duplicates_that_differ_are_told(tmp_path: Path, keys: Path) -> None:
    steps = (start(), draw(ON, [0]), fail(ON), *rest(), copy(ON, 1, crash(0, 3)), copy(ON, 2), end())
    outcome = look(build(tmp_path, keys, third(), *steps).folder)
    says = (
        "duplicates that differ: ledger.jsonl line 30: records/main.probe.on.attempt-2/00001, 2 of 16 lines"
    )
    assert outcome.steps[7].detail().startswith(says)
    assert "00002" not in outcome.steps[7].detail()
    assert says in text(outcome.value(), [])
    # 4 units of 40 draws, a shard of 16 that counts no more, and two second results.
    assert outcome.steps[7].applied == 4 * 40 + 16 + 2


def test_a_study_without_such_duplicates_tells_none(tmp_path: Path, keys: Path) -> None:
    outcome = look(build(tmp_path, keys, third(), start(), *rest(), copy(ON), end()).folder)
    assert "duplicates" not in outcome.steps[7].detail()


def _fewer(lines: list[Json]) -> list[Json]:
    return lines[:-1]


def test_trees_are_tried_again_and_drawn_twice(tmp_path: Path, keys: Path) -> None:
    """A tree has one shard, so that no failed attempt stored it; its second results count for nothing."""
    walk = "walk.probe.on"
    steps = (
        start(), begin(walk), fail(walk), *walks(), copy(walk, 0, _fewer), copy(walk, 0, crash(4)),
        copy("walk.deep.off"), end(),
    )  # fmt: skip
    b = build(tmp_path, keys, third_exact(), *steps)
    outcome = look(b.folder)
    assert failed(outcome) == {}
    assert outcome.result == "AGREES"
    rows = json.loads((b.folder / "analysis/decisions.json").read_bytes())["exact"]["configurations"]
    assert [row["verdict"] for row in rows] == ["INCONCLUSIVE", "DEPARTS", "EQUAL_WITHIN_TOLERANCE"]
    assert [row["attempts"] for row in rows] == [{"off": 1, "on": n} for n in (1, 2, 1)]
    assert rows[1]["duplicates"] == {
        "off": {"copies": 0, "differing": 0},
        "on": {"copies": 2, "differing": 2},
    }
    assert rows[0]["duplicates"]["off"] == {"copies": 1, "differing": 0}
    # The draws of the same configuration have units of their own.
    own = json.loads((b.folder / "analysis/decisions.json").read_bytes())["configurations"]
    assert [row["attempts"] for row in own] == [{"off": 1, "on": 1}] * 2


@pytest.mark.parametrize("cause", ["unit-ceiling", "engine"])
def test_a_tree_that_a_ceiling_left_open(tmp_path: Path, keys: Path, cause: str) -> None:
    walk = "walk.probe.off"
    plan = third_exact(on_ceiling="INCONCLUSIVE", attempts=1)
    outcome = look(build(tmp_path, keys, plan, start(), fail(walk, cause), *walks(walk), end()).folder)
    assert failed(outcome) == {}
    value = outcome.value()
    verdict = "INVALID" if cause == "engine" else "INCONCLUSIVE"
    assert [row["verdict"] for row in value["exact"]][1] == verdict
    assert [row["status"] for row in value["premise"]] == ["INVALID", "NOT_REJECTED"]
    assert value["predictions"][0] == value["predictions"][0] | {"id": "departs", "status": "NOT_DETERMINED"}


def test_a_ceiling_leaves_what_rests_on_the_verdict_as_if_it_were_invalid(tmp_path: Path, keys: Path) -> None:
    """Section 16, section 15, and a prediction that lists INVALID."""
    said = {"kind": "verdict", "configuration": "probe"}
    claims = {"open": ["INCONCLUSIVE"], "lost": ["INVALID"], "any": ["VOID", "INCONCLUSIVE", "FAILS"]}
    predictions = [{"id": k, "statement": "x", "claim": said | {"in": v}} for k, v in claims.items()]
    plan = third(on_ceiling="INCONCLUSIVE", second=Second(), predictions=predictions, upto="collected")
    b = build(tmp_path, keys, plan, start(), fail(OFF, "unit-ceiling"), *rest(OFF), end())
    b.plan.upto = "audited"

    def decisions() -> Json:
        value = type(b).decisions(b)
        statuses = {"open": "NOT_DETERMINED", "lost": "HELD", "any": "NOT_DETERMINED"}
        value["predictions"] = [{"id": k, "status": v} for k, v in statuses.items()]
        return value

    value = decisions()
    row = value["configurations"][1]
    assert (row["verdict"], row["records"]["verdict"], row["hypothesis"]["status"]) == (
        "INCONCLUSIVE", "INVALID", "INVALID",
    )  # fmt: skip
    b.decisions = decisions  # type: ignore[method-assign]
    b.analyse()
    outcome = look(b.folder)
    assert failed(outcome) == {}
    assert [one["agrees"] for one in outcome.predictions] == [True] * 3
