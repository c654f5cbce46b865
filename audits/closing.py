"""Steps 8 and 11 to 13: the claims as files, everything derived again, and the two compared."""

from __future__ import annotations

from typing import Any

from audits import RULES
from audits.compare import compare, differences, values
from audits.decide import Derived, decide
from audits.fault import Fault, Found
from audits.ledger import Ledger
from audits.load import LARGE, SMALL, Folder
from audits.plan import Study
from audits.predict import status
from audits.records import Records
from audits.report import Outcome
from audits.schema import Schema
from audits.seal import moment
from audits.trust import Trust

DECISIONS = "analysis/decisions.json"
REPORT = "audit/report.json"
REPORT_SIGNATURE = "audit/report.json.sig"


def check_decisions_file(
    folder: Folder,
    ledger: Ledger,
    schemas: dict[str, Schema],
    trust: Trust,
    identity: tuple[str, str],
    found: Found,
) -> dict[str, Any] | None:
    """Step 8: the decisions and the audit report that exist are those the ledger names."""
    value: dict[str, Any] | None = None
    if ledger.analysis is not None:
        value = folder.machine(DECISIONS)
        schemas["decisions"].check(value, DECISIONS)
        if folder.read(DECISIONS).digest != ledger.analysis["body"]["decisions_sha256"]:
            found.fault("its bytes are not those of the ledger's last analysis", file=DECISIONS)
        found.applied += 1
    elif folder.has(DECISIONS):
        found.fault("the ledger has no analysis", file=DECISIONS)
    if ledger.audit is not None:
        _check_report(folder, ledger, ledger.audit, schemas["audit-report"], trust, identity, found)
    else:
        for path in folder.files("audit/"):
            found.fault("the ledger has no audit", file=path)
    if value is None and not found.applied and not found.faults:
        found.waiting = "there is no analysis yet"
    return value


def _check_report(
    folder: Folder,
    ledger: Ledger,
    entry: dict[str, Any],
    schema: Schema,
    trust: Trust,
    identity: tuple[str, str],
    found: Found,
) -> None:
    body = entry["body"]
    report = folder.machine(REPORT, LARGE)
    schema.check(report, REPORT)
    if folder.read(REPORT).digest != body["report_sha256"]:
        found.fault("its bytes are not those of the ledger's last audit", file=REPORT)
    signature = folder.read(REPORT_SIGNATURE, SMALL)
    if signature.digest != body["signature_sha256"]:
        found.fault("its bytes are not those of the ledger's last audit", file=REPORT_SIGNATURE)
    said = {"study": identity[0], "seal": identity[1], "ledger_head": entry["prev"], "result": body["result"]}
    for key, value in said.items():
        if report[key] != value:
            found.fault(f"is {report[key]!r}, the ledger says {value!r}", file=REPORT, pointer=f"/{key}")
    at = moment(report["audited_at"], REPORT, "/audited_at")
    if at > moment(entry["time"], "ledger.jsonl", "/time"):
        found.fault("is after the ledger's audit entry", file=REPORT, pointer="/audited_at")
    try:
        trust.check(
            folder.read(REPORT).data,
            signature.data,
            namespace="prereg-audit",
            principal=entry["actor"],
            roles=("reviewer",),
            at=at,
        )
    except Fault as fault:
        raise fault.at(REPORT_SIGNATURE) from None
    found.applied += 1
    found.notes.append(f"an earlier audit by {entry['actor']}: {body['result']}")


def derive_decisions(study: Study, records: Records, found: Found) -> dict[str, Derived]:
    """Step 11: every configuration whose units are authenticated."""
    derived: dict[str, Derived] = {}
    left: list[str] = []
    for configuration in study.configurations:
        name = configuration["id"]
        units = {study.unit(name, arm) for arm in (study.off, study.on)}
        if units & records.bad:
            left.append(name)
            continue
        derived[name] = decide(study, records, configuration)
        found.applied += 1
    if left:
        found.waiting = f"not derived, for their records are not authenticated (step 7): {', '.join(left)}"
    return derived


def derive_predictions(study: Study, derived: dict[str, Derived], found: Found) -> dict[str, str]:
    """Step 12: every prediction whose configurations were derived."""
    verdicts = {name: one.row["verdict"] for name, one in derived.items()}
    predicted: dict[str, str] = {}
    for prediction in study.predictions:
        claim = prediction["claim"]
        named = [claim["configuration"]] if claim["kind"] == "verdict" else claim["configurations"]
        if verdicts.keys() >= set(named):
            predicted[prediction["id"]] = status(claim, verdicts, study.protocol["decision"]["rule"])
            found.applied += 1
        else:
            found.waiting = "some predictions rest on configurations that were not derived"
    return predicted


def compare_decisions(
    study: Study,
    claimed: dict[str, Any] | None,
    seal: str | None,
    derived: dict[str, Derived],
    predicted: dict[str, str],
    outcome: Outcome,
    found: Found,
) -> None:
    """Step 13: the claims against what was derived; fills the report's two lists."""
    rows = {} if claimed is None else {row["id"]: row for row in claimed["configurations"]}
    statuses = {} if claimed is None else {row["id"]: row["status"] for row in claimed["predictions"]}
    if claimed is not None:
        head = {
            "schema": "prereg/decisions/v1", "study": study.id, "seal": seal, "rules": RULES,
            "alpha": study.protocol["alpha"], "m": len(study.configurations),
            "configurations": [c["id"] for c in study.configurations],
            "predictions": [p["id"] for p in study.predictions],
        }  # fmt: skip
        said = claimed | {
            key: [row["id"] for row in claimed[key]] for key in ("configurations", "predictions")
        }
        for difference in differences(said, head):
            found.fault(difference, file=DECISIONS)
    for name, one in derived.items():
        row = rows.get(name)
        wrong = ["not claimed"] if row is None else compare(row, one)
        found.applied += values(one.row)
        outcome.configurations.append({
            "id": name,
            "verdict": one.row["verdict"],
            "claimed": None if row is None else row["verdict"],
            "agrees": not wrong,
            "differences": wrong,
        })  # fmt: skip
        if claimed is not None:
            for difference in wrong:
                found.fault(f"{name} {difference}", file=DECISIONS)
    for name, status_ in predicted.items():
        said_status = statuses.get(name)
        agrees = said_status == status_
        row = {"id": name, "status": status_, "claimed": said_status, "agrees": agrees}
        outcome.predictions.append(row)
        found.applied += 1
        if claimed is not None and not agrees:
            found.fault(f"prediction {name}: claimed {said_status}, derived {status_}", file=DECISIONS)
