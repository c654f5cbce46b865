"""A report that praises an earlier state is not that of the present head."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import forge

CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger_head"


def apply(study: Path, tools: ModuleType) -> None:
    report = study / "audit/report.json"
    value = json.loads(report.read_bytes()) | {"ledger_head": "0" * 64}
    report.write_bytes(forge.canonical(value))
    tools.sign(study, "audit/report.json", "rex", "prereg-audit")

    def entered(found: list[Any]) -> None:
        body = {"report_sha256": tools.sha(report.read_bytes())}
        body["signature_sha256"] = tools.sha((study / "audit/report.json.sig").read_bytes())
        found[-1]["body"] |= body

    forge.entries(study, entered, who="rex")
