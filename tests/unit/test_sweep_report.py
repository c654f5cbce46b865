"""A sweep's rows kept on the disk, and as JUnit XML."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from prereg.collect.sweep_state import State, judge_digest, one_sweep, state_file
from prereg.collect.sweep_table import uncovered_row
from prereg.errors import WrongState
from prereg.model.sweep import Row, Try
from prereg.report.junit import junit
from prereg.store.layout import distribution_root

TRIED = Try(seed="2198", initializer_range=0.4, prompt="abab", horizon=3)
EQUAL: Row = replace(
    uncovered_row("top-k", "total variation at most 1e-7"),
    verdict="EQUAL_WITHIN_TOLERANCE",
    features={"top_k": 4},
    tried=TRIED,
    tv_lower=1e-7,
    tv_upper=1e-7,
    activity={"top_k": 0.1},
    outcomes=43,
    seconds=1.5,
)
PATH = {
    "what": "row",
    "choices": [6],
    "outcome": {"tokens": [6], "finish": "eos"},
    "prefix": [],
    "used": [0.25, 0.75],
    "expected": [0.5, 0.5],
    "saw": [0, 1],
    "should_have_seen": [0, 1],
    "calls": [{"saw": [0, 1]}, {"saw": [0, 1, 0]}],
    "sequential_calls": [{"saw": [0, 1]}],
}
DEPARTS = replace(EQUAL, case="guidance", verdict="DEPARTS", reason="total variation 0.4", failing_path=PATH)
ROWS = [
    EQUAL,
    DEPARTS,
    replace(EQUAL, case="selfhash", verdict="CRASHES", reason="raises IndexError"),
    replace(EQUAL, case="both", verdict="BOTH_CRASH", reason="both arms raise"),
    replace(EQUAL, case="void", verdict="VOID", reason="not admitted"),
    replace(EQUAL, case="idle", verdict="INCONCLUSIVE", reason="idle changed nothing"),
    uncovered_row("max_time", "by the clock"),
]


def suite(rows: list[Row], absent: Mapping[str, Sequence[str]] | None = None) -> ElementTree.Element:
    data = junit(
        rows,
        build="hf-5.20.2",
        engine="transformers 5.20.2",
        vocabulary=["a", "b", *"cdef", "<eos>"],
        absent=absent or {},
    )
    found = ElementTree.fromstring(data).find("testsuite")
    assert found is not None
    return found


def test_each_row_is_one_test_case_of_its_kind() -> None:
    found = suite(ROWS)
    counts = {name: found.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "7", "failures": "1", "errors": "3", "skipped": "2"}
    kinds = {case.get("name"): [child.tag for child in case if child.tag != "system-out"] for case in found}
    assert kinds == {
        "top-k": [],
        "guidance": ["failure"],
        "selfhash": ["error"],
        "both": ["error"],
        "void": ["error"],
        "idle": ["skipped"],
        "max_time": ["skipped"],
    }
    assert float(found.get("time", "0")) == pytest.approx(9.0)


def test_a_case_that_this_release_cannot_run_is_skipped_and_says_what_it_lacks() -> None:
    found = suite([EQUAL, DEPARTS], {"top-h": ["top_h"], "both": ["one", "two"]})
    assert (found.get("tests"), found.get("failures"), found.get("skipped")) == ("4", "1", "2")
    messages = {case.get("name"): case.find("skipped") for case in found.iter("testcase")}
    assert list(messages) == ["top-k", "guidance", "top-h", "both"]
    skipped = messages["both"]
    assert skipped is not None and skipped.get("message") == "not in this release: one, two"


def test_a_failure_carries_what_it_rests_on_and_the_path() -> None:
    failure = suite([DEPARTS]).find("testcase/failure")
    assert failure is not None and failure.text is not None
    assert failure.get("type") == "DEPARTS"
    for words in ("43 outcomes", "top_k 0.1", "returned               <eos>", "its calls were"):
        assert words in failure.text


def test_a_feature_of_unknown_activity_is_not_called_none() -> None:
    text = suite([replace(DEPARTS, activity={})]).findtext("testcase/failure")
    assert text is not None and "top_k not known" in text and "no feature" not in text


def test_a_path_without_an_oracle_shows_both_outcomes() -> None:
    path = {"what": "unknown", "choices": [], "outcome": {"tokens": [2, 3]}, "plain": {"tokens": [2]}}
    text = suite([replace(DEPARTS, failing_path=path)]).findtext("testcase/failure")
    assert text is not None
    assert "returned               c d" in text and "without speculation    c" in text


def test_what_xml_cannot_hold_is_replaced() -> None:
    found = suite([replace(DEPARTS, reason="a\x00\x1b[31m<b>&\ud800")]).find("testcase/failure")
    assert found is not None and found.get("message") == "DEPARTS: a\ufffd\ufffd[31m<b>&\ufffd"


def test_finished_rows_come_back_as_they_were(tmp_path: Path) -> None:
    state = State(tmp_path / "sweeps" / "a.jsonl")
    for row in ROWS:
        state.add(row)
    again = State(state.path)
    assert list(again.rows.values()) == ROWS


def test_a_line_that_a_kill_cut_off_is_forgotten_and_the_next_is_whole(tmp_path: Path) -> None:
    state = State(tmp_path / "a.jsonl")
    state.add(EQUAL)
    state.add(DEPARTS)
    data = state.path.read_bytes()
    state.path.write_bytes(data[:-20])
    again = State(state.path)
    assert list(again.rows.values()) == [EQUAL]
    again.add(DEPARTS)
    assert list(State(state.path).rows.values()) == [EQUAL, DEPARTS]


def test_cases_that_are_swept_anew_are_forgotten_and_no_others(tmp_path: Path) -> None:
    state = State(tmp_path / "a.jsonl")
    state.add(EQUAL)
    state.add(DEPARTS)
    assert list(State(state.path, anew={"guidance"}).rows) == ["top-k"]
    assert list(State(state.path).rows) == ["top-k"]


def test_another_environment_table_harness_judge_or_drafter_has_another_file() -> None:
    base = ["f", "t", "h", "j", "default"]
    files = {state_file(*base)}
    for at in range(5):
        files.add(state_file(*[*base[:at], "other", *base[at + 1 :]]))
    assert len(files) == 6


def test_verdicts_do_not_survive_another_judge(tmp_path: Path) -> None:
    """Each module that finds a verdict counts, as this installation has it."""
    installed = distribution_root() / "prereg"
    assert judge_digest() == judge_digest(installed)
    package = tmp_path / "prereg"
    shutil.copytree(installed, package, ignore=shutil.ignore_patterns("__pycache__"))
    before = judge_digest(package)
    for module in (
        "analyse/exact.py",
        "analyse/laws.py",
        "analyse/shape.py",
        "collect/sweep_case.py",
        "collect/activity.py",
        "draft/family.py",
        "draft/rules.py",
        "stats/membership.py",
        "cli/sweep.py",
    ):
        with (package / module).open("a") as stream:
            stream.write("# corrected\n")
        after = judge_digest(package)
        assert after != before, module
        before = after


def test_two_sweeps_do_not_share_a_state_file(tmp_path: Path) -> None:
    path = tmp_path / "sweeps" / "a.jsonl"
    code = (
        "import sys, pathlib\n"
        "from prereg.collect.sweep_state import one_sweep\n"
        "with one_sweep(pathlib.Path(sys.argv[1])):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        with pytest.raises(WrongState, match="another sweep of this build") as caught, one_sweep(path):
            pass
        assert caught.value.where == str(path) and caught.value.next_step
        assert other.stdin is not None
        other.stdin.close()
    with one_sweep(path):
        pass
