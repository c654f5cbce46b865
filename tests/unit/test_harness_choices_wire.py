"""The worker's operations `choices` and `explain`, as a client sees them."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from choices_fixture import distance, sequential

from harness.oracle.naive import canonical
from harness.session import Session
from harness.wire import BAD_REQUEST, UNSUPPORTED, JobError

SEED = 7
OFF = {"id": "off", "role": "reference", "speculation": False}
ON = {"id": "on", "role": "test", "speculation": True}

PRELUDE = f"""
import sys
sys.path[:0] = [{str(Path(__file__).parent)!r}, *{[path for path in sys.path if "site-packages" in path]!r}]
import choices_fixture
from harness.adapters import base
class Adapter:
    def open(self, configuration, model, prompt, cwd):
        change = dict(configuration.get("change") or {{}})
        self.bench = choices_fixture.bench({SEED}, configuration["mode"], **change)
    def program(self, arm):
        return self.bench.program(arm)
    def kernel(self):
        return self.bench.kernel()
class Steered:
    def __init__(self, program):
        self._program = program
    def __getattr__(self, name):
        return getattr(self._program, name)
    def seeded(self, seed, wrapped):
        return {{"outcome": wrapped and seed == 2**64 - 1}}
class Seeded(Adapter):
    def program(self, arm):
        return Steered(super().program(arm))
class Crashing(Adapter):
    def program(self, arm):
        program = super().program(arm)
        return type("", (), {{"run": lambda self, chooser: choices_fixture.Run(
            outcome={{"crash": "IndexError"}},
            counters=dict(proposals=0, verifications=0, accepted=0),
            digest="0" * 32,
        )}})()
    def kernel(self):
        raise IndexError("the engine's own")
class Bare:
    def open(self, configuration, model, prompt, cwd):
        pass
base.ENGINES = {{
    "small": base.Engine(module="__main__", factory="Adapter", install=""),
    "seeded": base.Engine(module="__main__", factory="Seeded", install=""),
    "crashing": base.Engine(module="__main__", factory="Crashing", install=""),
    "bare": base.Engine(module="__main__", factory="Bare", install=""),
}}
"""


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session(sys.executable, prelude=PRELUDE, patience=60) as session:
        yield session


def opened(session: Session, mode: str, **change: Any) -> None:
    session.ask("open", configuration={"adapter": "small", "mode": mode, "change": change})


def walk(session: Session, **fields: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    leaves: list[dict[str, Any]] = []
    for message in session.stream("choices", **({"arm": ON} | fields)):
        if "error" in message:
            raise JobError(message["error"]["code"], message["error"]["message"])
        if "ok" in message:
            return leaves, message["ok"]
        if "restart" in message:
            assert message["restart"] in ({"reason": "refill"}, {"reason": "closed"})
            leaves.clear()
        else:
            leaves.append(message["leaf"])
    raise AssertionError("no end")


def law(leaves: list[dict[str, Any]]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for leaf in leaves:
        found.setdefault(canonical(leaf["outcome"]), []).append(leaf["weight"])
    return {key: math.fsum(weights) for key, weights in found.items()}


@pytest.mark.parametrize("mode", ["lookup", "model"])
def test_leaves_then_the_end(session: Session, mode: str) -> None:
    opened(session, mode)
    leaves, end = walk(session)
    assert distance(law(leaves), sequential(SEED)) < 1e-12
    assert (end["unexplored"], end["frontier"], end["admission"]["ok"]) == (0.0, [], True)
    assert end["runs"] == len(leaves) and end["admission"]["proposals"] > 0
    for leaf in leaves:
        assert leaf.keys() == {
            "choices", "kinds", "p", "weight", "outcome", "counters", "digest", "closed", "filled",
        }  # fmt: skip
        assert leaf["weight"] == math.prod(leaf["p"])
        assert len(leaf["kinds"]) == len(leaf["choices"]) == len(leaf["p"])
        assert set(leaf["kinds"]) <= set("tdarb")
    assert leaves == walk(session)[0]


def test_an_engine_that_raises_in_its_oracle_too_has_none(session: Session) -> None:
    session.ask("open", configuration={"adapter": "crashing", "mode": "lookup"})
    (leaf,), end = walk(session, arm=OFF)
    assert leaf["outcome"] == {"crash": "IndexError"}
    assert end["admission"]["oracle"] is None


@pytest.mark.parametrize("mode", ["full", "best-first"])
def test_a_frontier_is_where_another_goes_on(session: Session, mode: str) -> None:
    opened(session, "lookup")
    first, end = walk(session, mode=mode, budget={"runs": 3, "seconds": None})
    assert end["runs"] == 3 and end["unexplored"] > 0.0 and end["admission"]["ok"]
    second, rest = walk(session, prefixes=end["frontier"])
    assert rest["unexplored"] == 0.0 and not rest["admission"]["weights"]["whole"]
    assert distance(law([*first, *second]), sequential(SEED)) < 1e-12


def test_prefixes_are_subtrees(session: Session) -> None:
    opened(session, "lookup")
    whole, _ = walk(session)
    parts = [leaf for first in range(3) for leaf in walk(session, prefixes=[[first]])[0]]
    assert sorted(parts, key=lambda leaf: leaf["choices"]) == sorted(whole, key=lambda leaf: leaf["choices"])


def test_a_restart_voids_what_came_before(session: Session) -> None:
    opened(session, "lookup", reuses=True)
    leaves, end = walk(session)
    assert end["admission"]["restarts"] == ["refill"] and end["admission"]["refill"]["expanded"]
    assert distance(law(leaves), sequential(SEED)) < 1e-12


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mode": "random"}, "mode is not one of"),
        ({"close_last": 1}, "close_last"),
        ({"budget": 3}, "budget is not an object"),
        ({"budget": {"minutes": 3}}, "budget is not an object"),
        ({"budget": {"runs": 1.5}}, "budget.runs"),
        ({"budget": {"seconds": -1}}, "budget.seconds"),
        ({"prefixes": 3}, "prefixes is not a list"),
        ({"prefixes": [3]}, "neither a list"),
        ({"prefixes": [[-1]]}, "nonnegative"),
        ({"prefixes": [{"choices": [0], "weight": 2}]}, "weight"),
        ({"prefixes": [{"choices": [0], "more": 2}]}, "neither a list"),
        ({"arm": None}, "arm is missing"),
        ({"seeds": []}, "seeds is not a list of decimal strings"),
        ({"seeds": "1"}, "seeds is not a list of decimal strings"),
        ({"seeds": [1]}, "not a seed: 1"),
        ({"seeds": ["1", "01"]}, "not a seed: '01'"),
        ({"seeds": [str(2**64)]}, "not a seed"),
    ],
)
def test_bad_requests(session: Session, fields: dict[str, Any], message: str) -> None:
    opened(session, "lookup")
    with pytest.raises(JobError, match=message) as caught:
        walk(session, **fields)
    assert caught.value.code == BAD_REQUEST


def test_the_wrappers_are_tried_with_the_seeds_of_the_request(session: Session) -> None:
    session.ask("open", configuration={"adapter": "seeded", "mode": "lookup"})
    last = str(2**64 - 1)
    for seeds, different in (([last], 1), (["0", last, "7"], 1), (["7"], 0)):
        check = walk(session, seeds=seeds)[1]["admission"]["interference"]
        assert (check["checked"], check["different"], check["ok"]) == (len(seeds), different, not different)
    assert walk(session)[1]["admission"]["interference"]["checked"] == 4


def test_an_engine_that_cannot_be_steered(session: Session) -> None:
    session.ask("open", configuration={"adapter": "bare"})
    with pytest.raises(JobError, match="cannot be steered") as caught:
        walk(session)
    assert caught.value.code == UNSUPPORTED


def test_without_an_oracle_nothing_is_explained(session: Session) -> None:
    opened(session, "lookup")
    assert session.ask("explain", arm=ON, choices=[[0]]).ok == {"path": None}
    with pytest.raises(JobError, match="choices is not"):
        session.ask("explain", arm=ON, choices=[0])
