"""A report that was written after its entry is not what the reviewer entered then."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import forge

CAUGHT_BY = ("verify", "auditor")
NAMED = "audited_at"


def apply(study: Path, tools: ModuleType) -> None:
    report = study / "audit/report.json"
    value = json.loads(report.read_bytes()) | {"audited_at": "2031-01-01T00:00:00.000000+00:00"}
    report.write_bytes(forge.canonical(value))
    tools.sign(study, "audit/report.json", "rex", "prereg-audit")

    def entered(found: list[Any]) -> None:
        body = {"report_sha256": tools.sha(report.read_bytes())}
        body["signature_sha256"] = tools.sha((study / "audit/report.json.sig").read_bytes())
        found[-1]["body"] |= body

    forge.entries(study, entered, who="rex")
    forge.amend(study)
