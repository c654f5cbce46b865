"""What a ledger of edition 3 may tell of attempts, shards and second results (docs/formats.md section 21)."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from exact_fixture import exact_files, exact_protocol
from second_fixture import encoded
from third_fixture import third

from prereg.codec.study_files import parse_study
from prereg.errors import VerificationFailed
from prereg.model.attempts import Tried
from prereg.model.plan import plan
from prereg.model.seal import Entry
from prereg.model.study import Study
from prereg.seal.attempted import Attempted

OFF, ON, TREE = "drawn.same.off", "drawn.same.on", "walked.same.on"
DIGEST = "0" * 64
Said = tuple[str, dict[str, Any]]


def study(**changes: Any) -> Study:
    protocol = exact_protocol()
    third(protocol)
    return parse_study(encoded(exact_files(protocol | changes)))


STUDY = study()


def place(unit: str, shard: int, attempt: int) -> dict[str, Any]:
    return {"unit": unit, "shard": shard, "attempt": attempt}


def start() -> Said:
    return ("collection-started", {"attempt": 1})


def begin(unit: str = ON, shard: int = 0, attempt: int = 1) -> Said:
    return ("attempt", place(unit, shard, attempt))


def store(unit: str = ON, shard: int = 0, attempt: int = 1, draws: int = 200) -> Said:
    return ("shard-stored", {**place(unit, shard, attempt), "draws": draws})


def twice(unit: str = ON, shard: int = 0, attempt: int = 1, lines: int = 200) -> Said:
    return ("duplicate", {**place(unit, shard, attempt), "lines": lines, "differing": 0})


def fail(unit: str = ON, attempt: int = 1, cause: str | None = "engine") -> Said:
    body = {"unit": unit, "attempt": attempt, "reason": f"{cause} {attempt}"}
    return ("unit-invalid", body if cause is None else {**body, "cause": cause})


def end(stored: int, *invalid: str, complete: bool = False) -> Said:
    return ("collection-ended", {"stored": stored, "invalid": list(invalid), "complete": complete})


def take(*said: Said, of: Study = STUDY) -> Attempted:
    """Read these entries."""
    planned = {(s.unit.id, s.index): s for s in plan(of.protocol, of.seeds)}
    found = Attempted(protocol=of.protocol, planned=planned)
    for seq, (kind, body) in enumerate(said, 1):
        entry = Entry(
            seq=seq,
            time="t",
            type=kind,
            actor="a",
            body=body,
            body_sha256=DIGEST,
            prev=DIGEST,  # type: ignore[arg-type]
        )
        found.take(entry, f"L{seq}#")
    return found


def whole(unit: str, attempt: int = 1) -> list[Said]:
    """All shards of a unit, begun and stored in one attempt."""
    shards = [s for s in plan(STUDY.protocol, STUDY.seeds) if s.unit.id == unit]
    return [
        said
        for s in shards
        for said in (begin(unit, s.index, attempt), store(unit, s.index, attempt, s.draws or 4))
    ]


UNITS = [unit.id for unit in STUDY.protocol.units()]
SOUND: dict[str, list[Said]] = {
    "begun again in another run": [start(), begin(), start(), begin(), store()],
    "begun again in another attempt": [start(), begin(), fail(), begin(attempt=2), store(attempt=2)],
    "two results in two runs": [start(), begin(), store(), start(), twice(), twice()],
    "a result of an attempt that failed since": [start(), begin(), store(), fail(), twice()],
    "a tree of other leaves": [start(), begin(TREE), store(TREE, draws=4), twice(TREE, lines=5)],
    "a failure without a beginning": [start(), fail()],
    "two failures": [start(), fail(), fail(attempt=2), end(0, ON)],
    "one failure is not the end": [start(), fail(), end(0)],
    "a ceiling of one request is not the end": [start(), fail(cause="request-ceiling"), end(0)],
    "a ceiling of the unit is the end": [start(), fail(cause="unit-ceiling"), end(0, ON)],
    "a ceiling of the study is the end": [start(), fail(cause="study-ceiling"), end(0, ON)],
    "complete": [start(), *(s for u in UNITS for s in whole(u)), end(8, complete=True)],
    "complete in the second attempt": [
        *[start(), fail(), *(s for u in UNITS for s in whole(u, 1 + (u == ON)))],
        end(8, complete=True),
    ],
    "complete but for a unit that is over": [
        *[start(), fail(), fail(attempt=2), *(s for u in UNITS if u != ON for s in whole(u))],
        end(6, ON, complete=True),
    ],
    "stored twice, in two attempts": [start(), begin(), store(), fail(), *whole(ON, 2), end(3)],
}
UNSOUND: dict[str, tuple[list[Said], str, str]] = {
    "stored and never begun": ([start(), store()], "L2#/body/shard", "no entry `attempt`"),
    "begun in the run before": ([start(), begin(), start(), store()], "shard", "no entry `attempt`"),
    "begun in the attempt before": ([start(), begin(), fail(), store(attempt=2)], "shard", "no entry"),
    "begun another shard": ([start(), begin(shard=1), store()], "shard", "no entry `attempt`"),
    "begun another unit": ([start(), begin(OFF), store()], "shard", "no entry `attempt`"),
    "begun twice": ([start(), begin(), begin()], "shard", "said before"),
    "begun when stored": ([start(), begin(), store(), start(), begin()], "shard", "is stored"),
    "begun no shard of the plan": ([start(), begin(shard=2)], "shard", "no shard of the plan"),
    "begun the second attempt first": ([start(), begin(attempt=2)], "attempt", "in attempt 1, not 2"),
    "begun the first attempt again": ([start(), fail(), begin()], "attempt", "in attempt 2, not 1"),
    "begun a third attempt of two": ([start(), fail(), fail(attempt=2), begin(attempt=3)], "unit", "over"),
    "begun after the unit's ceiling": ([start(), fail(cause="unit-ceiling"), begin()], "unit", "over"),
    "begun after the study's ceiling": (
        [start(), fail(cause="study-ceiling"), begin(attempt=2)], "unit", "over"
    ),
    "stored in the attempt that failed": ([start(), begin(), fail(), store()], "attempt", "in attempt 2"),
    "stored after the end of the unit": (
        [start(), begin(), fail(cause="unit-ceiling"), store()], "unit", "over"
    ),
    "stored twice": ([start(), begin(), store(), store()], "shard", "stored before"),
    "stored too few draws": ([start(), begin(), store(draws=199)], "draws", "says 200"),
    "failed in the attempt before": ([start(), fail(), fail()], "attempt", "in attempt 2"),
    "failed after the end": ([start(), fail(cause="unit-ceiling"), fail()], "unit", "over"),
    "failed without a cause": ([start(), fail(cause=None)], "cause", "is missing"),
    "twice before once": ([start(), begin(), twice()], "shard", "not stored in this attempt"),
    "twice of another attempt": (
        [start(), begin(), store(), fail(), twice(attempt=2)], "shard", "not stored in this attempt"
    ),
    "twice after the end": (
        [start(), begin(), store(), fail(cause="unit-ceiling"), twice()], "unit", "over"
    ),
    "twice in too few draws": ([start(), begin(), store(), twice(lines=199)], "lines", "says 200"),
    "twice no shard of the plan": ([start(), twice(shard=2)], "shard", "no shard of the plan"),
    "complete with a unit to be tried again": (
        [start(), fail(), *(s for u in UNITS if u != ON for s in whole(u)), end(6, complete=True)],
        "complete",
        "2 shards are missing, the first drawn.same.on/00000",
    ),
    "complete in the attempt that failed": (
        [
            *[start(), begin(), store(), fail()],
            *(s for u in UNITS if u != ON for s in whole(u)),
            end(7, complete=True),
        ],
        "complete",
        "2 shards are missing",
    ),
    "failed when it was finished": ([start(), *whole(ON), fail()], "unit", "all shards of the unit"),
    "failed when its second attempt was finished": (
        [start(), fail(), *whole(ON, 2), fail(attempt=2)], "unit", "all shards of the unit"
    ),
    "a failure told as the end": ([start(), fail(), end(0, ON)], "invalid", "not the set"),
    "an end not told": ([start(), fail(cause="unit-ceiling"), end(0)], "invalid", "not the set"),
    "what failed is not counted": (
        [start(), begin(), store(), fail(), *whole(ON, 2), end(2)], "stored", "3 shards"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SOUND)
def test_what_may_be_told(name: str) -> None:
    take(*SOUND[name])


@pytest.mark.parametrize("name", UNSOUND)
def test_what_may_not_be_told(name: str) -> None:
    said, place, what = UNSOUND[name]
    with pytest.raises(VerificationFailed, match=what) as caught:
        take(*said)
    assert caught.value.where is not None
    assert caught.value.where.startswith(f"L{len(said)}#/body/") and caught.value.where.endswith(place)


EARLIER = dataclasses.replace(STUDY, protocol=dataclasses.replace(STUDY.protocol, edition=2, attempts=1))


def test_before_edition_3_nothing_is_begun_and_a_lost_unit_may_still_be_told_of() -> None:
    found = take(
        *[start(), fail(cause=None), store(), ("unit-invalid", {**fail(cause=None)[1], "reason": "again"})],
        end(1, ON),
        of=EARLIER,
    )
    assert found.units == {ON: Tried(over=True, reason="None 1")}  # the first reason counts


@pytest.mark.parametrize(
    ("said", "place"),
    [(store(attempt=2), "attempt"), (fail(attempt=2, cause=None), "attempt"), (fail(), "cause")],
)
def test_before_edition_3_there_is_one_attempt_and_no_cause(said: Said, place: str) -> None:
    with pytest.raises(VerificationFailed) as caught:
        take(start(), said, of=EARLIER)
    assert caught.value.where == f"L2#/body/{place}"
