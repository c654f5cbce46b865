"""The table of faults tried against faults caught, which `make faults` prints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One row a group: what a test recorded as `group`, or the folder of faults that it is from."""
    rows: dict[str, list[int]] = {}
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            if report.when != "call" or (group := _group(report)) is None:
                continue
            found = dict(report.user_properties)
            row = rows.setdefault(group, [0, 0, 0, 0])
            row[0] += 1
            row[1] += outcome == "passed"
            row[2] += int(found.get("lost", 0))
            row[3] += int(found.get("doubled", 0))
    if rows:
        terminalreporter.section("faults tried against faults caught")
        for line in _lines(rows):
            terminalreporter.write_line(line)


def _group(report: Any) -> str | None:
    named = dict(report.user_properties).get("group")
    if named is None and "test_fault_is_caught" in report.nodeid:
        return "tampering with a study"
    return None if named is None else str(named)


def _lines(rows: dict[str, list[int]]) -> Iterable[str]:
    wide = max(map(len, rows))
    yield f"| {'fault':{wide}} | tried | caught | draws lost | draws doubled |"
    yield f"|{'-' * (wide + 2)}|------:|-------:|-----------:|--------------:|"
    total = [sum(row[i] for row in rows.values()) for i in range(4)]
    for group, row in [*sorted(rows.items()), ("all", total)]:
        yield f"| {group:{wide}} | {row[0]:5} | {row[1]:6} | {row[2]:10} | {row[3]:13} |"
