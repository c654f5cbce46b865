"""The states that a study may be audited in."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from audits_fixture import Builder
from audits_kit import Copy, failed, look
from audits_plan import Plan
from test_audits_history import HEAD, LEDGER, copy, keys, template

__all__ = ["copy", "keys", "template"]


@pytest.mark.parametrize(
    ("upto", "says"), [("sealed", "prereg collect"), ("collected", "prereg analyse"), ("analysed", "")]
)
def test_every_state(tmp_path: Path, keys: Path, upto: str, says: str) -> None:
    outcome = look(Builder(tmp_path / "r", keys, Plan(upto=upto)).build())
    assert failed(outcome) == {}
    assert outcome.result == ("INCOMPLETE" if says else "AGREES")
    assert says in " ".join(outcome.incomplete)
    if upto == "collected":
        assert [(row["verdict"], row["claimed"], row["agrees"]) for row in outcome.configurations] == [
            ("NOT_REJECTED", None, False), ("FAILS", None, False),
        ]  # fmt: skip


def test_a_draft(copy: Copy) -> None:
    for path in (
        "seal",
        LEDGER,
        HEAD,
        f"{HEAD}.sig",
        "records",
        "analysis",
        "audit",
    ):
        copy.drop(path)
    outcome = look(copy.study)
    assert failed(outcome) == {}
    assert outcome.result == "INCOMPLETE"
    assert "prereg seal" in outcome.incomplete[0]


def test_decisions_the_ledger_does_not_know(tmp_path: Path, keys: Path, copy: Copy) -> None:
    study = Builder(tmp_path / "q", keys, Plan(upto="collected")).build()
    shutil.copytree(copy.study / "analysis", study / "analysis")
    assert "analysis/decisions.json" in failed(look(study))[8]


def test_an_incomplete_collection(tmp_path: Path, keys: Path) -> None:
    plan = Plan(upto="collected", left_out=("main.probe.on",))
    outcome = look(Builder(tmp_path / "r", keys, plan).build())
    assert failed(outcome) == {}
    assert outcome.result == "INCOMPLETE"
    assert outcome.steps[7].applied == 120
