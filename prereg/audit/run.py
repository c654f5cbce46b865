"""`prereg audit`: the auditor runs isolated, and the reviewer signs exactly the bytes it wrote."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prereg.audit.resume import audit_message, resume_audit
from prereg.codec.canonical import digest, loads_machine
from prereg.codec.convert import read_authored
from prereg.codec.schema import validate
from prereg.errors import EngineFailed, EvidenceIncomplete, PreregError, WrongState
from prereg.model.places import bearing, place_fault, state
from prereg.model.seal import Entry
from prereg.model.study import Protocol
from prereg.seal.finish import sign_head_and_commit
from prereg.seal.keys import SigningKey
from prereg.seal.manifest import read_manifest
from prereg.seal.trust import AUDIT, check_own_signer, load_trust, refuse_uncommitted
from prereg.seal.verify import NEXT
from prereg.store.files import read_once, write_whole
from prereg.store.layout import StudyPaths, auditor_root, not_sealed
from prereg.store.ledger import LedgerFault, append, head_of, parse_time, read_ledger
from prereg.store.lock import outrun, study_lock

CEILING_SECONDS = 3600
"""An audit that takes longer is stopped: it recomputes bounds, it runs no engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRun:
    """What the auditor's process left behind."""

    report: bytes
    value: dict[str, Any]
    exit_code: int
    text: str
    stands: bool = False
    """Whether the report was entered before, and another look found the same."""

    @property
    def report_sha256(self) -> str:
        return digest(self.report)

    @property
    def result(self) -> str:
        return str(self.value["result"])


def run_auditor(paths: StudyPaths, *, without_history: bool = False, python: str | None = None) -> AuditRun:
    """Run `python -I audits STUDY` in a process of its own and read its report back.

    The interpreter is isolated (`-I`) and its environment is bare, so nothing of prereg is on its path; the
    auditor itself also refuses to import prereg or harness. Raises EngineFailed if it ends without a report.
    """
    with tempfile.TemporaryDirectory(prefix="audit-") as scratch:
        target = Path(scratch) / "report.json"
        command = [
            python or sys.executable,
            "-I",
            str(auditor_root()),
            str(paths.root),
            "--report",
            str(target),
        ]
        if without_history:
            command.append("--without-history")
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8", "HOME": scratch}
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, env=environment, cwd=scratch, timeout=CEILING_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise EngineFailed(
                f"the auditor took over {CEILING_SECONDS} s",
                where=str(paths.root),
                next_step="prereg audit DIR, on a machine that is faster or has less to do",
            ) from None
        if not target.is_file():
            tail = (done.stderr or done.stdout).strip()[-2000:]
            raise EngineFailed(
                f"the auditor ended with {done.returncode} and no report: {tail}", where=str(paths.root)
            )
        report = target.read_bytes()
    return _read_back(report, exit_code=done.returncode, text=done.stdout)


def _read_back(report: bytes, *, exit_code: int = 0, text: str = "") -> AuditRun:
    value = loads_machine(report, where="audit/report.json")
    validate(value, "audit-report", where="audit/report.json")
    assert isinstance(value, dict)
    return AuditRun(report=report, value=value, exit_code=exit_code, text=text)


def audit_study(
    paths: StudyPaths, *, key: SigningKey, principal: str, without_history: bool = False
) -> AuditRun:
    """Run the auditor, and sign, enter and commit its report if it reached the decisions.

    A report that says AGREES or DISAGREES becomes part of the study. One that says FAILED or INCOMPLETE does
    not: there is no authentic ledger to enter it in. An audit that was killed over its entry is completed,
    and its report returned; so is the report of this reviewer's audit that nothing came after, if another one
    finds the same. Raises WrongState where no audit may stand in the ledger (nothing is written
    then) and for the author's own key, and Untrusted if the signer is no reviewer.
    """
    manifest = read_manifest(read_once(paths.manifest)) if paths.manifest.exists() else None
    if manifest is None:
        raise not_sealed(paths)
    refuse_place(paths)
    refuse_own_audit(manifest.author.key, manifest.author.principal, key.fingerprint, principal)
    refuse_named(paths, principal)
    check_own_signer(
        load_trust(paths),
        principal=principal,
        public_key=key.public_key,
        roles=("reviewer",),
        namespace=AUDIT,
        at=datetime.now(UTC),
        where=str(paths.allowed_signers),
    )
    refuse_uncommitted(paths)
    report = resume_audit(paths, key=key, principal=principal)
    if report is not None:
        return _read_back(report)
    run = run_auditor(paths, without_history=without_history)
    if run.result not in ("AGREES", "DISAGREES"):
        return run
    with study_lock(paths):
        if run.value["ledger_head"] != head_of(read_once(paths.ledger)):
            raise outrun("another program added to it during the audit")
        if (standing := _standing(paths, principal, run)) is not None:
            return standing
        refuse_place(paths)
        signature = key.sign(run.report, namespace=AUDIT)
        write_whole(paths.audit_report, run.report)
        write_whole(paths.audit_signature, signature)
        body = {
            "seal": run.value["seal"],
            "report_sha256": run.report_sha256,
            "signature_sha256": digest(signature),
            "result": run.result,
        }
        # The report has the time of the auditor's process: a clock that was set back since would enter it
        # before it was written.
        now = max(datetime.now(UTC), parse_time(run.value["audited_at"]))
        append(paths, "audit", body, principal, now=now)
        sign_head_and_commit(
            paths,
            key=key,
            principal=principal,
            message=audit_message(paths, run.result),
            touched=[paths.audit_report.parent],
        )
    return run


def _standing(paths: StudyPaths, principal: str, run: AuditRun) -> AuditRun | None:
    """The audit that the ledger ends with, if it is this reviewer's and `run` finds what it found."""
    last = read_ledger(read_once(paths.ledger))[-1]
    if last.type != "audit" or last.actor != principal:
        return None
    before = _read_back(read_once(paths.audit_report))
    same = before.report_sha256 == last.body["report_sha256"] and _findings(before) == _findings(run)
    return replace(before, stands=True) if same else None


GROWING = (1, 6, 8, 9)
"""Steps that look at more once there is an audit: folder, ledger, decisions, order."""


def _findings(run: AuditRun) -> dict[str, Any]:
    """What a report says of a study, apart from when it was written and what the audit before it added."""
    found = {name: part for name, part in run.value.items() if name not in ("ledger_head", "audited_at")}
    steps = [
        {**step, "applied": 0, "detail": ""} if step["number"] in GROWING else step
        for step in run.value["steps"]
    ]
    return found | {"steps": steps}


def refuse_own_audit(author_key: str, author: str, reviewer_key: str, reviewer: str) -> None:
    """Raise WrongState if the reviewer is the author, by key or by name."""
    if author_key == reviewer_key or author == reviewer:
        raise WrongState(
            "the reviewer's key is the author's: nobody audits their own study",
            where="--key",
            next_step="prereg key new FILE --principal NAME --role reviewer, as another person",
        )


def refuse_named(paths: StudyPaths, reviewer: str) -> None:
    """Raise WrongState if the protocol names the reviewer among the study's authors (formats, section 4).

    A protocol that cannot be read is left to the auditor, which says what is wrong with it.
    """
    try:
        protocol = read_authored(read_once(paths.protocol), "protocol", Protocol, where="protocol.json")
    except PreregError:
        return
    if reviewer in protocol.named_authors:
        raise WrongState(
            f"{reviewer} is one of the study's authors by its protocol: nobody audits their own study",
            where="--key",
            next_step="prereg audit DIR, by somebody who is not",
        )


def refuse_place(paths: StudyPaths) -> None:
    """Raise WrongState where the ledger takes no audit, before anything is written.

    A ledger that is missing or no chain is left to the auditor, which names what is wrong with it.
    """
    try:
        entries = read_ledger(read_once(paths.ledger))
    except (LedgerFault, EvidenceIncomplete):
        return
    probe = Entry(seq=0, time="", type="audit", actor="", body={}, body_sha256="", prev="")
    if fault := place_fault(entries, probe):
        now = state(entries)
        # After a run that ended with something missing an analysis may follow, if the protocol bounds it.
        ended = now == "collecting" and bearing(entries).type == "collection-ended"
        raise WrongState(
            f"the study is {now}: {fault}",
            where=str(paths.root),
            next_step=f"{'prereg analyse' if ended else NEXT[now]} {paths.root}",
        )


PARTS = (
    ("configurations", "", "verdict"),
    ("exact", " (exact)", "verdict"),
    ("premise", " (premise)", "status"),
)
"""The parts of a report that derive decisions; the last two are there with an exact stage."""


def disagreements(value: dict[str, Any]) -> list[str]:
    """Every failed step and every decision that the auditor derives differently, a line each."""
    out = [
        f"step {s['number']} {s['name']}: {s['detail']}" for s in value["steps"] if s["status"] == "failed"
    ]
    for part, word, field in PARTS:
        for c in value.get(part, []):
            if not c["agrees"]:
                out.append(
                    f"{c['id']}{word}: derived {c[field]}, claimed {c['claimed']}; "
                    + "; ".join(c["differences"])
                )
    for p in value["predictions"]:
        if not p["agrees"]:
            out.append(f"prediction {p['id']}: derived {p['status']}, claimed {p['claimed']}")
    return out
