"""Every verdict in a whole study, against the fixture's slow twin."""

from __future__ import annotations

from pathlib import Path

import pytest
from audits_fixture import Builder
from audits_kit import failed, look, make_keys
from audits_plan import Plan
from audits_slow import CRASH, A, B, C, D


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_keys(tmp_path_factory.mktemp("audit-keys"))


VERDICTS: dict[str, tuple[Plan, list[str]]] = {
    "no witness": (Plan(on=lambda c, j: [A, B, A, C][j % 4]), ["NOT_REJECTED", "NOT_REJECTED"]),
    "crashes": (Plan(on=lambda c, j: CRASH if j % 4 == 3 else [A, B, A, C][j % 4]), ["NOT_REJECTED"] * 2),
    "many crashes": (Plan(on=lambda c, j: CRASH), ["FAILS", "FAILS"]),
    "the off arm violates": (
        Plan(off=lambda c, j: D if c == "probe" and j == 7 else [A, B, A, C][j % 4]),
        ["NOT_REJECTED", "VOID"],
    ),
    "the off arm is not P": (Plan(off=lambda c, j: B, on=lambda c, j: B), ["VOID", "VOID"]),
    "nothing proposed": (Plan(proposals=lambda c: 3 * (c == "probe")), ["INCONCLUSIVE", "FAILS"]),
    "a unit lost": (Plan(invalid=("main.probe.on",)), ["NOT_REJECTED", "INVALID"]),
    "an off arm lost": (Plan(invalid=("main.control.off",)), ["INVALID", "FAILS"]),
    "missing and bounded": (Plan(left_out=("main.probe.off",), missing="bound"), ["NOT_REJECTED", "INVALID"]),
    "without an oracle": (
        Plan(
            rule="event-gap", law=None, allowance=None,
            events=[
                {"id": "one", "kind": "value", "equals": 1},
                {"id": "half", "kind": "at-least", "value": 0.5},
                {"id": "crash", "kind": "crash"},
            ],
            off=lambda c, j: {"value": j % 2},
            on=lambda c, j: {"value": 1.5 if c == "probe" else j % 2},
            predictions=[
                {
                    "id": "p", "statement": "x",
                    "claim": {"kind": "verdict", "configuration": "probe", "in": ["DIFFERS"]},
                }
            ],
        ),
        ["NOT_REJECTED", "DIFFERS"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts_of_whole_studies(tmp_path: Path, keys: Path, name: str) -> None:
    plan, verdicts = VERDICTS[name]
    outcome = look(Builder(tmp_path / "r", keys, plan).build())
    assert failed(outcome) == {}
    assert [row["verdict"] for row in outcome.configurations] == verdicts
    assert outcome.result == "AGREES"
