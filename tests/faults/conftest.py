"""The table of faults tried against faults caught, which `make faults` prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

OUTCOMES = ("passed", "xpassed", "failed", "xfailed", "error")
"""In this order: of a test that passed and could then not be cleaned up the error counts."""
UNNAMED = "an error before the fault"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the table, where a fault was tried."""
    if rows := tally(terminalreporter.stats):
        terminalreporter.section("faults tried against faults caught")
        for line in _lines(rows):
            terminalreporter.write_line(line)


def tally(stats: Mapping[str, Sequence[Any]]) -> dict[str, list[int]]:
    """Tried, caught, draws lost and draws doubled, by group.

    The group is what a test recorded as `group`, or the folder of faults that it is from. A fault that is
    known to be missed (xfailed), and one whose test broke, is tried and not caught. A test of many faults
    records their number as `points`, and as `held` how many were caught.
    """
    last: dict[str, tuple[str, str, Any]] = {}
    for outcome in OUTCOMES:
        for report in stats.get(outcome, []):
            if (group := _group(report, outcome)) is not None:
                last[report.nodeid] = group, outcome, report
    rows: dict[str, list[int]] = {}
    for group, outcome, report in last.values():
        found = dict(report.user_properties)
        row = rows.setdefault(group, [0, 0, 0, 0])
        row[0] += int(found.get("points", 1))
        row[1] += int(found.get("held", outcome in ("passed", "xpassed")))
        row[2] += int(found.get("lost", 0))
        row[3] += int(found.get("doubled", 0))
    return rows


def _group(report: Any, outcome: str) -> str | None:
    named = dict(report.user_properties).get("group")
    if named is not None:
        return str(named)
    if "test_fault_is_caught" in report.nodeid:
        return "tampering with a study"
    broken = outcome == "error" and report.nodeid.startswith(("tests/faults/", "tests/tamper/"))
    return UNNAMED if broken else None


def _lines(rows: Mapping[str, Sequence[int]]) -> Iterable[str]:
    wide = max(map(len, rows))
    yield f"| {'fault':{wide}} | tried | caught | draws lost | draws doubled |"
    yield f"|{'-' * (wide + 2)}|------:|-------:|-----------:|--------------:|"
    total = [sum(row[i] for row in rows.values()) for i in range(4)]
    for group, row in [*sorted(rows.items()), ("all", total)]:
        yield f"| {group:{wide}} | {row[0]:5} | {row[1]:6} | {row[2]:10} | {row[3]:13} |"
