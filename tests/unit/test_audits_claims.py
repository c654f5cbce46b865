"""What a study claims against what follows from its records, and whole studies with one thing amiss."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from audits_fixture import Builder
from audits_kit import change, drop, failed, look, make_keys, put
from audits_plan import Plan

Json = dict[str, Any]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_keys(tmp_path_factory.mktemp("audit-keys"))


CLAIMS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a verdict": (put("configurations", 0, "verdict", to="INCONCLUSIVE"), "/verdict"),
    "a reason": (put("configurations", 1, "reasons", to=["bound"]), "/reasons"),
    "D": (lambda v: put("configurations", 0, "D", to=v["configurations"][0]["D"] + 2e-10)(v), "/D"),
    "the event of D": (put("configurations", 1, "D_event", to="b"), "/D_event"),
    "its complement": (put("configurations", 1, "D_complement", to=True), "/D_complement"),
    "eligible": (put("configurations", 1, "eligible", to=False), "/eligible"),
    "a witness left out": (put("configurations", 1, "witnesses", to=[]), "/witnesses"),
    "a witness's count": (put("configurations", 1, "witnesses", 0, "count", to=1), "/witnesses/0/count"),
    "a count": (put("configurations", 0, "bounds", 2, "k_on", to=3), "/bounds/2/k_on"),
    "a bound": (put("configurations", 0, "bounds", 2, "U_off", to=0.9), "/bounds/2/U_off"),
    "a probability": (put("configurations", 0, "bounds", 0, "p", to=0.4), "/bounds/0/p"),
    "a bound left out": (drop("configurations", 0, "bounds", 9), "/bounds"),
    "the level": (put("configurations", 0, "level", to=0.05), "/level"),
    "B": (put("configurations", 0, "B", to=20), "/B"),
    "proposals": (put("configurations", 0, "proposals", to=1), "/proposals"),
    "crashes": (put("configurations", 0, "crashes", "on", to=1), "/crashes/on"),
    "calibration": (put("configurations", 0, "calibration", "excess", to=0.1), "/calibration/excess"),
    "m": (put("m", to=1), "/m"),
    "alpha": (put("alpha", to=0.1), "/alpha"),
    "the study": (put("study", to="other"), "/study"),
    "the seal": (put("seal", to="0" * 64), "/seal"),
    "a configuration left out": (drop("configurations", 0), "control not claimed"),
    "configurations in another order": (lambda v: v["configurations"].reverse(), "/configurations/0"),
    "a prediction": (
        put("predictions", 0, "status", to="FAILED"),
        "prediction fails: claimed FAILED, derived HELD",
    ),
    "a prediction left out": (drop("predictions", 1), "prediction few"),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_that_does_not_follow_disagrees(tmp_path: Path, keys: Path, name: str) -> None:
    edit, says = CLAIMS[name]
    outcome = look(Builder(tmp_path / "r", keys, change("decisions", edit)).build())
    found = failed(outcome)
    assert list(found) == [13], found
    assert says in found[13]
    assert "analysis/decisions.json" in found[13]
    assert outcome.result == "DISAGREES"


def test_a_collection_called_complete_without_a_unit(tmp_path: Path, keys: Path) -> None:
    plan = change("collection-ended body", put("complete", to=True))
    plan.left_out, plan.upto = ("main.probe.on",), "collected"
    found = failed(look(Builder(tmp_path / "r", keys, plan).build()))
    assert list(found) == [7]
    assert "complete without shard 00000 of main.probe.on" in found[7]


def test_numbers_within_the_tolerance_agree(tmp_path: Path, keys: Path) -> None:
    def nudge(value: Any) -> None:
        value["configurations"][0]["D"] += 5e-11
        value["configurations"][0]["bounds"][0]["L_on"] -= 5e-11

    assert look(Builder(tmp_path / "r", keys, change("decisions", nudge)).build()).result == "AGREES"


def test_two_studies_of_one_repository(tmp_path: Path, keys: Path) -> None:
    first = Builder(tmp_path / "r", keys, Plan()).build()
    second = Builder(tmp_path / "r", keys, Plan(study="second", first_seed=2000)).build()
    assert look(first).result == "AGREES"
    assert look(second).result == "AGREES"
    third = Builder(tmp_path / "r", keys, Plan(study="third", first_seed=2**32 + 2039, upto="sealed")).build()
    found = failed(look(third))
    assert list(found) == [10]
    assert (
        "block block-0 of third and block block-3 of second share [2039, 2040) at their low 32 bits"
        in found[10]
    )
    assert "used by main.probe.on of second" in found[10]
    assert 10 in failed(look(second))
    assert look(first).result == "AGREES"
    (third / "seeds.json").write_text("{}")
    assert "third/seeds.json" in failed(look(first))[10]


def test_a_protocol_with_a_duplicate_key(tmp_path: Path, keys: Path) -> None:
    class Twice(Builder):
        def write(self, path: str, data: bytes) -> bytes:
            if path == "protocol.json":
                data = data.replace(b"{", b'{"alpha": 0.01,', 1)
            return super().write(path, data)

    found = failed(look(Twice(tmp_path / "r", keys, Plan(upto="sealed")).build()))
    assert "protocol.json: duplicate key 'alpha'" in found[5]


def test_the_ledger_written_anew_is_found_by_history_alone(tmp_path: Path, keys: Path) -> None:
    """The author collects again, and keeps a ledger and records that agree with each other."""
    builder = Builder(tmp_path / "r", keys, Plan())
    builder.start()
    builder.seal()
    sealed = list(builder.lines)
    builder.collect()
    builder.lines = sealed
    shutil.rmtree(builder.folder / "records")
    builder.plan.on = lambda c, j: {"tokens": [1, 2], "finish": None}
    for verb in (builder.collect, builder.analyse, builder.audit):
        verb()
    outcome = look(builder.folder)
    assert list(failed(outcome)) == [9]
    assert "ledger.jsonl" in failed(outcome)[9]
    assert look(builder.folder, without_history=True).result == "AGREES"


def test_the_report_is_one_of_the_formats(tmp_path: Path, keys: Path) -> None:
    value = look(Builder(tmp_path / "r", keys, Plan()).build()).value()
    assert json.loads(json.dumps(value))["auditor"]["rules"] == 1
