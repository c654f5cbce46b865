"""The table of `make faults` counts every fault that was tried, whatever came of it."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SOME = """
import pytest

def test_caught(record_property):
    record_property("group", "kills")

def test_missed(record_property):
    record_property("group", "kills")
    record_property("lost", 3)
    assert False

def test_many_of_which_one_is_missed(record_property):
    record_property("group", "points")
    record_property("points", 7)
    record_property("held", 6)
    assert False

def test_fault_is_caught():
    pytest.xfail("known")

@pytest.fixture
def broken():
    yield
    assert False

def test_not_cleaned_up(broken, record_property):
    record_property("group", "kills")

@pytest.fixture
def absent():
    assert False

def test_never_tried(absent):
    pass
"""
ROWS = {
    "an error before the fault": (1, 0, 0, 0),
    "kills": (3, 1, 3, 0),
    "points": (7, 6, 0, 0),
    "tampering with a study": (1, 0, 0, 0),
    "all": (12, 7, 3, 0),
}
pytest_plugins = ["pytester"]


def test_missed_known_and_broken_faults_are_tried_and_not_caught(pytester: pytest.Pytester) -> None:
    place = pytester.mkdir("tests") / "faults"
    place.mkdir()
    (place / "conftest.py").write_text((HERE / "conftest.py").read_text())
    (place / "test_some.py").write_text(SOME)
    lines = pytester.runpytest("-p", "no:cacheprovider").outlines
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    assert {name: tuple(map(int, row)) for name, *row in cells[1:]} == ROWS
