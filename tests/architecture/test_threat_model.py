"""The threat model names only tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def named() -> list[str]:
    """The names in the last column of the table of promises, rows in their order."""
    _, found, rest = (
        (ROOT / "docs" / "threat-model.md").read_text("utf-8").partition("## Promise by promise\n")
    )
    assert found
    rows = [line.strip().strip("|").split("|") for line in rest.splitlines() if line.startswith("| ")]
    heads, *rows = ([cell.strip() for cell in row] for row in rows)
    assert heads[-1] == "shown by"
    for row in rows:
        assert len(row) == len(heads) and "`" in row[-1], row
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row[-1])]


def test_every_test_that_the_threat_model_names_exists() -> None:
    names = named()
    assert len(names) > 50
    places = {
        name: ROOT / name if "/" in name else ROOT / "tests" / "tamper" / name / "fault.py" for name in names
    }
    assert [name for name, place in places.items() if not place.is_file()] == []
