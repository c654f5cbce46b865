"""What the verbs after collection wrote, held against the ledger (step 8)."""

from __future__ import annotations

from datetime import datetime

from prereg.codec.canonical import digest, loads_machine
from prereg.codec.schema import validate
from prereg.errors import VerificationFailed
from prereg.seal import sshsig
from prereg.seal.head import ROLES
from prereg.seal.trust import AUDIT, check_signer
from prereg.seal.verified import Run
from prereg.store.files import read_in
from prereg.store.ledger import parse_time


def check_decisions(run: Run) -> int:
    """Hold analysis/decisions.json against the last `analysis` entry; returns how many files there were.

    Raises VerificationFailed or a codec error.
    """
    last = next((e for e in reversed(run.entries) if e.type == "analysis"), None)
    name = "analysis/decisions.json"
    if last is None:
        if name in run.tree.files:
            raise VerificationFailed(
                "has no ledger entry", where=name, next_step=f"prereg analyse {run.paths.root}"
            )
        return 0
    data = _read(run, name)
    if digest(data) != last.body["decisions_sha256"]:
        raise VerificationFailed(
            f"its SHA-256 is not that of ledger entry {last.seq}",
            where=name,
            next_step=f"git checkout -- {name}",
        )
    value = loads_machine(data, where=name)
    validate(value, "decisions", where=name)
    _same(value, {"study": run.manifest.study, "seal": run.seal, "rules": run.manifest.rules}, name)
    return 1


def check_audit(run: Run) -> int:
    """Hold audit/report.json and its signature against the last `audit` entry; returns how many files.

    Raises VerificationFailed, Untrusted or a codec error.
    """
    last = next((e for e in reversed(run.entries) if e.type == "audit"), None)
    name = "audit/report.json"
    if last is None:
        for file in (name, f"{name}.sig"):
            if file in run.tree.files:
                raise VerificationFailed(
                    "has no ledger entry", where=file, next_step=f"prereg audit {run.paths.root}"
                )
        return 0
    data, armored = _read(run, name), _read(run, f"{name}.sig")
    for file, found, key in ((name, data, "report_sha256"), (f"{name}.sig", armored, "signature_sha256")):
        if digest(found) != last.body[key]:
            raise VerificationFailed(f"its SHA-256 is not that of ledger entry {last.seq}", where=file)
    signature = sshsig.verify(armored, data, namespace=AUDIT, where=f"{name}.sig")
    value = loads_machine(data, where=name)
    validate(value, "audit-report", where=name)
    assert isinstance(value, dict)
    audited = _time(value["audited_at"], f"{name}#/audited_at")
    check_signer(
        run.trust,
        principal=last.actor,
        public_key=signature.public_key,
        roles=ROLES["audit"],
        namespace=AUDIT,
        at=audited,
        rescue=run.head_stamps.entry(last.seq),
        where=f"{name}.sig",
    )
    _same(value, {"study": run.manifest.study, "seal": run.seal, "result": last.body["result"]}, name)
    if parse_time(last.time) < audited:
        raise VerificationFailed(
            f"is after ledger entry {last.seq}, its own, which is of {last.time}", where=f"{name}#/audited_at"
        )
    if value["ledger_head"] != last.prev:
        raise VerificationFailed(
            f"is not the head before ledger entry {last.seq}, its own", where=f"{name}#/ledger_head"
        )
    return 2


def _time(text: str, where: str) -> datetime:
    try:
        return parse_time(text)
    except ValueError as error:
        raise VerificationFailed(f"no such time: {error}", where=where) from None


def _same(value: object, expected: dict[str, object], where: str) -> None:
    assert isinstance(value, dict)
    for key, wanted in expected.items():
        if value[key] != wanted:
            raise VerificationFailed(f"is {value[key]!r:.80}, not {wanted!r:.80}", where=f"{where}#/{key}")


def _read(run: Run, name: str) -> bytes:
    return read_in(run.paths.root, name)[0]
