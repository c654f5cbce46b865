"""`prereg sweep` on the real engine: known verdicts, what they rest on, and nothing left out silently."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from prereg.collect.sweep import offered_by
from prereg.collect.sweep_table import left_out, load_table

PREREG = str(Path(sys.executable).parent / "prereg")
BUILD = "hf-5.17.0"

EQUAL = ("plain", "min-new-tokens", "sequence-bias", "temperature-low", "top-k")
DEPARTING = ("guidance", "synthid", "stop-string")


def sweep(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [PREREG, "sweep", "--build", BUILD, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def only(*names: str) -> list[str]:
    return [part for name in names for part in ("--only", name)]


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    junit = tmp_path_factory.mktemp("sweep") / "sweep.xml"
    done = sweep(*only(*EQUAL, *DEPARTING), "--json", "--junit", str(junit), "--fail-on", "departs")
    assert done.returncode == 1, done.stderr[-3000:]
    assert "left)" in done.stderr
    value: dict[str, Any] = json.loads(done.stdout)
    return value, junit


@pytest.mark.engines
def test_known_verdicts(swept: tuple[dict[str, Any], Path]) -> None:
    rows = {row["case"]: row for row in swept[0]["cases"]}
    assert {name: row["verdict"] for name, row in rows.items()} == {
        **dict.fromkeys(EQUAL, "EQUAL_WITHIN_TOLERANCE"),
        **dict.fromkeys(DEPARTING, "DEPARTS"),
    }
    assert all(rows[name]["tv_lower"] > 0.1 for name in DEPARTING)
    assert all(rows[name]["failing_path"]["what"] == "row" for name in ("guidance", "synthid"))
    assert rows["stop-string"]["failing_path"]["what"] == "stop"


@pytest.mark.engines
def test_every_verdict_rests_on_an_active_feature_and_a_drafter_at_work(
    swept: tuple[dict[str, Any], Path],
) -> None:
    for row in swept[0]["cases"]:
        assert row["outcomes"] >= 20 and row["proposals"] > 0 and row["accepted"] > 0, row["case"]
        assert set(row["activity"]) == set(row["features"]), row["case"]
        assert all(tv > 1e-3 for tv in row["activity"].values()), row["case"]
        assert row["runs_off"] > 5 and row["runs_on"] > 5


@pytest.mark.engines
def test_junit_agrees(swept: tuple[dict[str, Any], Path]) -> None:
    suite = ElementTree.parse(swept[1]).find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("8", "3")
    text = suite.findtext("testcase[@name='guidance']/failure")
    assert text is not None and "the shortest failing path" in text


@pytest.mark.engines
def test_a_sweep_that_was_killed_goes_on() -> None:
    names = only("plain", "top-k", "min-p", "top-h")
    process = subprocess.Popen(
        [PREREG, "sweep", "--build", BUILD, *names, "--processes", "1"],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stderr.close()
    assert line.startswith("[1/4] plain")
    done = sweep(*names, "--resume", "--json")
    assert done.returncode == 0, done.stderr
    assert "of 4 cases are there" in done.stderr and "[1/4]" not in done.stderr
    assert [row["case"] for row in json.loads(done.stdout)["cases"]] == ["plain", "top-k", "min-p", "top-h"]


@pytest.mark.engines
def test_the_table_knows_everything_that_the_release_offers() -> None:
    table = load_table("hf")
    offered = offered_by(BUILD, table)
    assert "UnbatchedClassifierFreeGuidanceLogitsProcessor" in offered["processors"]
    assert "WatermarkLogitsProcessor" in offered["processors"]
    assert "StopStringCriteria" in offered["criteria"]
    assert set(left_out(table, offered)) == set(table.uncovered)
    # What introspection lost would not be missed otherwise.
    made = {name for case in table.cases for name in case.makes}
    assert made <= {*offered["processors"], *offered["criteria"]}


@pytest.mark.engines
def test_a_feature_that_the_table_does_not_know_is_listed() -> None:
    table = load_table("hf")
    lesser = replace(table, cases=tuple(c for c in table.cases if "guidance_scale" not in c.features))
    listed = left_out(lesser, offered_by(BUILD, table))
    for name in ("guidance_scale", "UnbatchedClassifierFreeGuidanceLogitsProcessor"):
        assert listed[name] == "the table does not know it"
