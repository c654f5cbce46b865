"""Step 8: the claims as files: the decisions and the report of an audit before."""

from __future__ import annotations

from typing import Any

from audits.attested import Attested
from audits.fault import Fault, Found
from audits.ledger import LEDGER, Ledger
from audits.load import LARGE, SMALL, Folder, moment
from audits.schema import Schema
from audits.study import Study
from audits.trust import Trust

DECISIONS = "analysis/decisions.json"
REPORT = "audit/report.json"
REPORT_SIGNATURE = "audit/report.json.sig"


def check_auditors(ledger: Ledger, study: Study | None, found: Found) -> None:
    """Step 6: nobody whom the protocol names as an author wrote an ``audit`` entry (section 4).

    Who has written it has signed it: step 8 holds the last one's signature against its actor, and step 9
    those of the heads against theirs. Without the protocol step 5 says what is wrong.
    """
    if study is None:
        return
    authors = {author["principal"] for author in study.protocol["authors"]}
    for i, entry in enumerate(ledger.entries, 1):
        if entry["type"] == "audit" and entry["actor"] in authors:
            what = f"{entry['actor']} is an author of the protocol, and does not audit it"
            found.fault(what, file=f"{LEDGER} line {i}", pointer="/actor")


def check_decisions_file(
    folder: Folder,
    ledger: Ledger,
    schemas: dict[str, Schema],
    trust: Trust,
    attested: Attested,
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
        _check_report(folder, ledger, schemas["audit-report"], trust, attested, identity, found)
    else:
        for path in folder.files("audit/"):
            found.fault("the ledger has no audit", file=path)
    if value is None and not found.applied and not found.faults:
        found.waiting = "there is no analysis yet"
    return value


def _check_report(
    folder: Folder,
    ledger: Ledger,
    schema: Schema,
    trust: Trust,
    attested: Attested,
    identity: tuple[str, str],
    found: Found,
) -> None:
    entry = ledger.audit
    assert entry is not None
    body = entry["body"]
    report = folder.machine(REPORT, LARGE)
    schema.check(report, REPORT)
    if folder.read(REPORT).digest != body["report_sha256"]:
        found.fault("its bytes are not those of the ledger's last audit", file=REPORT)
    signature = folder.read(REPORT_SIGNATURE, SMALL)
    if signature.digest != body["signature_sha256"]:
        found.fault("its bytes are not those of the ledger's last audit", file=REPORT_SIGNATURE)
    line = entry["seq"] if signature.digest == body["signature_sha256"] else len(ledger.entries) + 1
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
            outside=lambda key: attested.line(line),
        )
    except Fault as fault:
        raise fault.at(REPORT_SIGNATURE) from None
    found.applied += 1
    found.notes.append(f"an earlier audit by {entry['actor']}: {body['result']}")
