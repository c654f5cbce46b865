"""What `prereg events` asks of a worker, and what it refuses: with a worker that answers from a table."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from prereg.codec.convert import read_authored
from prereg.collect import oracle
from prereg.collect.oracle import References, enumerate_references
from prereg.draft.scaffold import Blanks, render
from prereg.errors import EngineFailed
from prereg.model.hypotheses import Hypotheses
from prereg.model.law import Crashed, Decoded, Mass, RecordEntry
from prereg.model.study import Protocol
from tests.unit.silent import Silent

P = {1: 0.5, 2: 0.5}
MU = {1: 0.25, 2: 0.5}
ENTRY = {"tokens": [0, 1], "values": [0.5, "-inf"]}


def masses(law: dict[int, float]) -> list[dict[str, Any]]:
    return [{"outcome": {"tokens": [token], "finish": None}, "p": p} for token, p in law.items()]


class Answering:
    """A worker that knows one law, one mechanism and one record."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.configuration = ""
        self.logical = P
        self.slow = P

    def __enter__(self) -> Answering:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def call(self, op: str, **fields: Any) -> Any:
        if op == "open":
            self.configuration = fields["configuration"]["id"]
            return {}
        self.asked.append((self.configuration, {"op": op, **fields}))
        if op == "law":
            return {"law": masses(self.slow if fields["naive"] else P)}
        if op == "mechanism":
            crash = [{"outcome": {"crash": "ValueError"}, "p": 0.25}]
            return {"law": masses(self.logical) if fields.get("logical") else [*masses(MU), *crash]}
        assert op == "replay"
        return {"records": [{"prefix": [], "entry": ENTRY}]}


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Answering:
    answering = Answering()
    quarters = SimpleNamespace(worker=lambda build, name: answering, folder="a folder")
    monkeypatch.setattr(oracle, "quarters_of", lambda protocol, builds, stage: quarters)
    monkeypatch.setattr(oracle, "staged_draft", lambda paths, builds: nullcontext())
    return answering


def enumerated(cross_check: bool = False) -> References:
    files = render("main", "main", Blanks(title="t", question="q", author="A", principal="a@b.c"), [])
    protocol = read_authored(files["protocol.json"], "protocol", Protocol, where="protocol.json")
    hypotheses = read_authored(files["hypotheses.json"], "hypotheses", Hypotheses, where="hypotheses.json")
    return enumerate_references(protocol, Silent(), hypotheses=hypotheses, cross_check=cross_check)


def test_every_configuration_has_a_law_and_those_registered_a_mechanism(worker: Answering) -> None:
    found = enumerated()
    assert len(found.laws) == 26 and set(found.replays) == {"hf17-9"}
    assert len(found.mechanisms) == 9
    made = found.mechanisms["hfx-8"]
    assert (made.id, made.switch) == ("H-D2-xgr", 0.0)
    assert made.law[-1] == Mass(outcome=Crashed(crash="ValueError"), p=0.25)
    assert made.law[0] == Mass(outcome=Decoded(tokens=(1,), finish=None), p=0.25)
    ((first,),) = found.replays.values()
    assert (first.prefix, first.entry) == ((), RecordEntry(tokens=(0, 1), values=(0.5, "-inf")))


def test_a_registered_law_is_taken_row_by_row_as_its_mechanism_is(worker: Answering) -> None:
    enumerated()
    naive = {name: asked["naive"] for name, asked in worker.asked if asked["op"] == "law"}
    registered = {name for name, asked in worker.asked if asked["op"] == "mechanism"}
    assert {name for name, slow in naive.items() if slow} == registered


def test_both_oracles_are_asked_whichever_comes_first(worker: Answering) -> None:
    enumerated(cross_check=True)
    for name in ("hf17-6", "hf17-n0"):
        asked = [each["naive"] for who, each in worker.asked if who == name and each["op"] == "law"]
        assert sorted(asked) == [False, True]
    worker.slow = {1: 0.5 + 2e-6, 2: 0.5 - 2e-6}
    with pytest.raises(EngineFailed, match="the two oracles disagree on hf12-p2"):
        enumerated(cross_check=True)


@pytest.mark.parametrize("gap", [0.9e-12, 1.1e-12])
def test_a_switch_that_does_not_give_p_names_its_hypothesis(worker: Answering, gap: float) -> None:
    worker.logical = {1: 0.5 + gap, 2: 0.5 - gap}
    if gap < 1e-12:
        assert 0 < enumerated().mechanisms["hf17-6"].switch <= 1e-12
        return
    with pytest.raises(EngineFailed, match=r"H-D2-cfg, every read made logical.*hf17-6") as caught:
        enumerated()
    assert caught.value.where == "hypotheses.json#/configurations (hf17-6)"


def test_an_outcome_that_p_has_not_counts_for_the_switch(worker: Answering) -> None:
    worker.logical = {1: 0.5, 3: 0.5}
    with pytest.raises(EngineFailed, match=r"differs by 0\.5"):
        enumerated()
