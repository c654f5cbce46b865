"""The report: what was looked at, what was derived, and the result; as canonical bytes or as a table."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from audits import RULES
from audits.fault import Found
from audits.jsonc import canonical
from audits.load import sha256
from audits.output import plain

NAMES = {
    1: "folder",
    2: "manifest",
    3: "files",
    4: "signature",
    5: "study files",
    6: "ledger",
    7: "records",
    8: "decisions file",
    9: "order",
    10: "seeds",
    11: "decisions re-derived",
    12: "predictions re-derived",
    13: "comparison",
}
"""The numbered steps."""
EXIT = {"AGREES": 0, "DISAGREES": 1, "FAILED": 1, "INCOMPLETE": 3}
"""Exit code by result."""


def code_digest(folder: Path) -> str:
    """One digest of the auditor's own code and rules."""
    paths = sorted(
        (path.relative_to(folder).as_posix(), path)
        for path in folder.rglob("*")
        if path.is_file() and (path.suffix == ".py" or path == folder / "rules.json")
    )
    return sha256("".join(f"{name}\0{sha256(path.read_bytes())}\n" for name, path in paths).encode())


@dataclass(slots=True)
class Outcome:
    """Everything an audit found, from which the report is written."""

    study: str
    seal: str | None = None
    ledger_head: str | None = None
    history: str = "missing"
    steps: dict[int, Found] = field(default_factory=dict)
    configurations: list[dict[str, Any]] = field(default_factory=list)
    predictions: list[dict[str, Any]] = field(default_factory=list)
    exact: list[dict[str, Any]] | None = None
    """None without an exact stage."""
    premise: list[dict[str, Any]] | None = None
    """None where no premise is tested."""
    incomplete: list[str] = field(default_factory=list)
    """What is missing, and how to go on."""
    warnings: list[str] = field(default_factory=list)
    """What the reviewer has to know of how the audit was started; none of it changes the result."""

    def status(self, number: int) -> str:
        """The status of a step."""
        found = self.steps.get(number)
        if found is None:
            return "not-checked"
        if found.faults:
            return "failed"
        return "not-checked" if found.waiting else "ok"

    @property
    def result(self) -> str:
        """The result: a failed step comes before a disagreement, and that before anything missing."""
        failed = [number for number in NAMES if self.status(number) == "failed"]
        if any(number != 13 for number in failed):
            return "FAILED"
        if failed:
            return "DISAGREES"
        if self.incomplete:
            return "INCOMPLETE"
        waived = {9} if self.history == "waived" else set()
        unchecked = [n for n in NAMES if self.status(n) != "ok" and n not in waived]
        return "INCOMPLETE" if unchecked else "AGREES"

    def value(self) -> dict[str, Any]:
        """The report as JSON."""
        steps = []
        for number, name in NAMES.items():
            found = self.steps.get(number, Found(waiting="not reached"))
            row = {"number": number, "name": name, "status": self.status(number), "applied": found.applied}
            steps.append(row | {"detail": found.detail()})
        value = {
            "schema": "prereg/audit-report/v1",
            "study": self.study,
            "seal": self.seal,
            "ledger_head": self.ledger_head,
            "audited_at": datetime.now(UTC).isoformat(timespec="microseconds"),
            "auditor": {
                "rules": RULES,
                "code_sha256": code_digest(Path(__file__).parent),
                "python": platform.python_version(),
            },
            "history": self.history,
            "result": self.result,
            "steps": steps,
            "configurations": self.configurations,
            "predictions": self.predictions,
        }
        extra = {"exact": self.exact, "premise": self.premise}
        return value | {key: rows for key, rows in extra.items() if rows is not None}


def report_bytes(value: dict[str, Any]) -> bytes:
    """The report's file: canonical, with a newline."""
    return canonical(value) + b"\n"


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    return [
        "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in rows
    ]


_LISTS = (
    ("configurations", "configuration", "verdict"),
    ("exact", "exact", "verdict"),
    ("premise", "premise", "status"),
    ("predictions", "prediction", "status"),
)
"""The report's lists, each with its title for people and the key of what was derived."""


def text(value: dict[str, Any], incomplete: list[str], warnings: Iterable[str] = ()) -> str:
    """The report for people; its last line holds the result."""
    lines = [f"study {plain(value['study'])}", f"seal  {value['seal'] or 'none'}", ""]
    lines += _table(
        [("step", "name", "status", "applied", "detail")]
        + [
            (str(s["number"]), s["name"], s["status"], str(s["applied"]), plain(s["detail"]))
            for s in value["steps"]
        ]
    )
    for key, title, status in _LISTS:
        if value.get(key):
            rows: list[tuple[str, ...]] = [(title, "derived", "claimed", "")]
            for row in value[key]:
                said = "; ".join(["differs", *row.get("differences", ())[:5]])
                said = "agrees" if row["agrees"] else said if row["claimed"] else "not claimed"
                rows.append((row["id"], row[status], row["claimed"] or "-", plain(said)))
            lines += ["", *_table(rows)]
    lines += ["", *(f"warning: {plain(item)}" for item in warnings)]
    lines += [f"missing: {plain(item)}" for item in incomplete]
    lines.append(f"result: {value['result']} (history {value['history']})")
    return "\n".join(lines) + "\n"
