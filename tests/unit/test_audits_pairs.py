"""Section 21: what an earlier attempt stored and the attempt that counts stored too was drawn twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from audits_kit import failed, look, make_keys
from audits_slow import CRASH, Json
from audits_third import ON, build, copy, crash, draw, end, fail, rest, start, third
from audits_tools import machine

from audits.duplicates import grouped, marks, pair_of
from audits.report import text


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_keys(tmp_path_factory.mktemp("audit-keys"))


def _one(name: str, value: Any) -> Any:
    """Draw 5 of the second attempt is another one."""
    if name == "record" and (value["unit"], value["attempt"], value["draw"]) == (ON, 2, 5):
        return value | {"outcome": CRASH}
    return value


AGAIN = (start(), draw(ON, [0]), fail(ON), *rest())


def test_draws_that_are_the_same_are_counted_and_not_told(tmp_path: Path, keys: Path) -> None:
    outcome = look(build(tmp_path, keys, third(), *AGAIN, end()).folder)
    assert (failed(outcome), outcome.result) == ({}, "AGREES")
    assert "duplicates" not in outcome.steps[7].detail()


def test_a_draw_that_differs_is_told_beside_the_duplicates(tmp_path: Path, keys: Path) -> None:
    outcome = look(build(tmp_path, keys, third(_one), *AGAIN, copy(ON, 1, crash(0, 3)), end()).folder)
    assert (failed(outcome), outcome.result) == ({}, "AGREES")
    says = (
        "records/main.probe.on.attempt-2/00001, 2 of 16 lines"
        " | records/main.probe.on/00000 and records/main.probe.on.attempt-2/00000, 1 of 16 lines"
    )
    assert says in outcome.steps[7].detail()
    assert says in text(outcome.value(), [])


def _leaves(attempt: int, *changed: int, count: int = 4) -> bytes:
    lines: list[Json] = [{"attempt": attempt, "leaf": i, "p": [0.5, i in changed]} for i in range(count)]
    return b"".join(map(machine, lines))


@pytest.mark.parametrize(
    ("other", "lines", "differing"),
    [
        (_leaves(1), 4, 0),
        (_leaves(1, 1, 3), 4, 2),
        (_leaves(1, count=2), 4, 2),
        (_leaves(1, 0, count=7), 7, 4),
    ],
)
def test_leaves(other: bytes, lines: int, differing: int) -> None:
    """By `leaf`. No whole study shows them: a tree is one shard, and what stored that did not fail."""
    old, new = ("u", 1, 0), ("u", 3, 0)
    assert grouped([old, ("u", 1, 1), ("v", 2, 0), new]) == [[old, new], [("u", 1, 1)], [("v", 2, 0)]]
    pair = pair_of(old, marks(old, other), new, marks(new, _leaves(3)))
    assert (pair.earlier, pair.counts) == (old, new)
    assert (pair.lines, pair.differing) == (lines, differing)
