"""What a killed audit left: taken away, or signed and committed, before another one begins.

An audit writes its report, the report's signature, the ledger's entry, the head, the head's signature and a
commit, in this order. Up to the entry nothing counts yet; from there on the audit is to be completed.
"""

from __future__ import annotations

import contextlib
from typing import Any

from prereg.codec.canonical import digest, loads_machine
from prereg.errors import EvidenceIncomplete, PreregError, VerificationFailed
from prereg.model.seal import Entry
from prereg.seal import sshsig
from prereg.seal.finish import is_committed, sign_head_and_commit
from prereg.seal.keys import SigningKey
from prereg.seal.trust import AUDIT
from prereg.seal.verify import verify_study
from prereg.store.files import read_once, write_whole
from prereg.store.folder import leftovers, partial_of
from prereg.store.layout import StudyPaths
from prereg.store.ledger import LedgerFault, head_of, mend, read_ledger
from prereg.store.lock import study_lock
from prereg.store.repo import Repo

REPORT = "audit/report.json"
_SIGNATURE = f"{REPORT}.sig"
_WRITTEN = {REPORT, _SIGNATURE, "ledger.head.json", "ledger.head.json.sig"}
"""The files of the study that an audit writes whole."""


def resume_audit(paths: StudyPaths, *, key: SigningKey, principal: str) -> bytes | None:
    """Bring back the study as it was before a killed audit, or complete that audit and return its report.

    Only an audit of this very reviewer is completed, and only with a report that this key signed. A ledger
    that is no chain is left to the auditor, which names what is wrong with it. Raises VerificationFailed if
    an entry that waits for its signed head is not what such an audit leaves.
    """
    with study_lock(paths):
        try:
            mend(paths)
            data = read_once(paths.ledger)
            last = read_ledger(data)[-1]
        except (LedgerFault, EvidenceIncomplete):
            return None
        for path in leftovers(paths):
            if partial_of(path.relative_to(paths.root).as_posix()) in _WRITTEN:
                path.unlink()
        if last.type == "audit" and last.actor == principal and not is_committed(paths):
            return _complete(paths, last, key, principal)
        _take_back(paths, head_of(data), [e for e in read_ledger(data) if e.type == "audit"])
        return None


def _complete(paths: StudyPaths, entry: Entry, key: SigningKey, principal: str) -> bytes:
    """Sign the head of an audit's entry and commit it; returns the report."""
    verified = verify_study(paths, records=False, allow_partials=True)
    where = f"ledger.jsonl:{entry.seq}"
    if verified.signed < entry.seq - 1:
        raise VerificationFailed(f"entry {verified.signed + 1} before it is not signed", where=where)
    report, armored = read_once(paths.audit_report), read_once(paths.audit_signature)
    signature = sshsig.verify(armored, report, namespace=AUDIT, where=_SIGNATURE)
    value: Any = loads_machine(report, where=REPORT)
    said = {
        "seal": value["seal"],
        "report_sha256": digest(report),
        "signature_sha256": digest(armored),
        "result": value["result"],
    }
    # Whoever can write here could enter an audit in the reviewer's name: what is signed is checked first.
    if (
        signature.public_key != key.public_key
        or said != entry.body
        or value["ledger_head"] != entry.prev
        or value["study"] != verified.manifest.study
    ):
        raise VerificationFailed(
            f"says that {principal} audited, but {REPORT} is not the report of that, signed by this key",
            where=where,
            next_step=f"git checkout -- ledger.jsonl audit, in {paths.root}",
        )
    sign_head_and_commit(
        paths,
        key=key,
        principal=principal,
        message=audit_message(paths, value["result"]),
        touched=[paths.audit_report.parent],
    )
    return report


def audit_message(paths: StudyPaths, result: str) -> str:
    """The first line of the commit of an audit."""
    return f"Audit study {paths.name}: {result}"


def _take_back(paths: StudyPaths, head: str, audits: list[Entry]) -> None:
    """Remove a report on the present ledger that has no entry, and put back the one that it replaced."""
    try:
        value: Any = loads_machine(read_once(paths.audit_report), where=REPORT)
        if value["ledger_head"] != head:
            return
    except (PreregError, KeyError, TypeError):
        return
    repo = Repo.find(paths.root)
    commit = repo.head()
    # The signature first: a kill in between leaves what is recognised here again.
    files = ((paths.audit_signature, "signature_sha256"), (paths.audit_report, "report_sha256"))
    for file, field in files:
        old = repo.blob_at(commit, file) if commit is not None else None
        if not audits:
            if old is None:
                file.unlink(missing_ok=True)
        elif old is not None and digest(old) == audits[-1].body[field]:
            with contextlib.suppress(EvidenceIncomplete):
                if read_once(file) == old:
                    continue
            write_whole(file, old)
